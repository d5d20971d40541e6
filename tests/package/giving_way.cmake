# The example of a holder that gives way, and of who asks it, on a local store of their own:
#   cmake -DEXAMPLE=... -DFOLDER=... -P giving_way.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})
# Whoever asks before there is a holder is told so, and asks again.
execute_process(
  COMMAND sh -c "\"$0\" work \"$1\" > \"$2\" & holder=$!
    tries=0
    until \"$0\" ask \"$1\"; do
      tries=$((tries + 1))
      [ $tries -lt 80 ] || exit 1
      sleep 0.1
    done
    wait $holder && grep -qx 'giving way' \"$2\""
    ${EXAMPLE} file://${FOLDER}/locks ${FOLDER}/said
  COMMAND_ERROR_IS_FATAL ANY)

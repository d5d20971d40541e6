# An example on a local store of its own, two of it at once:
#   cmake -DEXAMPLE=... -DFOLDER=... -P example.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})
execute_process(
  COMMAND sh -c "\"$0\" \"$@\" & first=$!; \"$0\" \"$@\" && wait $first"
    ${EXAMPLE} file://${FOLDER}/locks ${FOLDER}/stock
  COMMAND_ERROR_IS_FATAL ANY)

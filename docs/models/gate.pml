/* SPDX-License-Identifier: Apache-2.0
 *
 * Migration in mode move, governed by a gate: a plan moves every name of its pattern, those too that
 * nobody listed. Two names: one that a coordinator moves by its name, one that nobody listed. The
 * gate never says where a name is; it says what to do when the source grants it. T is used only for
 * a name whose own record in S says so, or when the gate is FINAL. How one name is moved, and back:
 * move.pml. Checked:
 * - one holder of a name at most, and each holder's token above all earlier ones of that name;
 * - nobody holds in T when a plan has been withdrawn and nothing was left of it;
 * - when the last coordinator was run to its end, each name can be had by all who may have it: a
 *   search in which somebody waits for what never comes is an error (-DLAST).
 *
 * A grant of S in which the claim may hold is the beginning of the hold here, and so is the second
 * look at the record: whoever is slower holds for a shorter time. A claim and the belief in it end
 * in one step, as in move.pml.
 *
 * Each BROKEN_... leaves one step out, and must be found out: scripts/check-models.
 * CLAIM_THEN_READ: stores that cannot look at the gate in the request that claims: the claim
 * comes first, then the look, and whoever lists takes a claim for one that may hold until then.
 * T_KEEPS_NO_RECORD: T forgets nothing, and yet a rollback does not close a name there.
 * RETURNING: an earlier plan has brought the names from T to S, and is FINAL. It has left name 0
 * closed in T (the other names nobody touched), with a claim waiting behind that; its programs know S
 * alone, by its certificate: they open what is closed in S and older than that.
 */
#ifndef CLIENTS
#define CLIENTS 1         /* with the route */
#endif
#ifndef T_ONLY
#define T_ONLY 1          /* know the target alone */
#endif
#ifndef S_ONLY
#define S_ONLY 1          /* know the source alone: they look at no gate */
#endif
#ifndef COORDINATORS
#define COORDINATORS 1    /* each step of each command, in any order; ends anywhere */
#endif
#ifndef NAMES
#define NAMES 2           /* name 0 is moved by its name before, the others are not */
#endif
#ifndef LISTED
#define LISTED 1          /* names that a coordinator moves by name */
#endif
#ifndef TRIES
#define TRIES 2           /* claims of each client, in S or T */
#endif
#ifndef TURNS
#define TURNS 3           /* of the gate */
#endif
#ifndef CHANGES
#define CHANGES 3         /* of a name's record, by coordinators */
#endif
#ifndef LOSSES
#define LOSSES 1          /* of leases, in all */
#endif

#ifdef RETURNING
#define LEFTOVERS 1
#define LAST_TOKEN 1      /* the newest of the earlier plan */
#else
#define LEFTOVERS 0
#define LAST_TOKEN 0
#endif
#ifdef BROKEN_FIRST_FLOOR_NOT_PASSED
#define FIRST_FLOOR 0
#else
#define FIRST_FLOOR LAST_TOKEN
#endif

#define FIRST_T_ONLY (CLIENTS + 1)
#define FIRST_S_ONLY (FIRST_T_ONLY + T_ONLY)
#define LEFTOVER (FIRST_S_ONLY + S_ONLY)
#define FIRST_COORDINATOR (LEFTOVER + LEFTOVERS)
#define IDS (FIRST_COORDINATOR + COORDINATORS + 1)
#define NOBODY 0
#define max(a, b) ((a) > (b) -> (a) : (b))
#ifndef T_KEEPS_NO_RECORD
#define T_IS_CLOSED
#endif

/* Of the gate: OPEN, TURNED, FINAL, ENDED. Of a name: NONE, MOVED, CLOSING. */
mtype = { OPEN, TURNED, FINAL, ENDED, NONE, MOVED, CLOSING };

mtype gate = OPEN;
byte gate_ver = 0, gate_floor = 0;
bool certificate = false;   /* in T, with gate_floor */
bool withdrawn = false;     /* ENDED, and no record was left */
byte floor_of_turn = 0;

/* In S: a name's record, in its place; its lock, its newest token. */
mtype record[NAMES] = NONE;
byte gen[NAMES], floor_token[NAMES];
byte s_holder[NAMES], s_token[NAMES];

/* In T: its lock, and what closes the place of a name that was moved back: the gen of CLOSING. */
byte t_holder[NAMES], t_token[NAMES] = LAST_TOKEN;
bool t_closed[NAMES];
byte t_closed_gen[NAMES];

/* A claim in S, waiting or granted. What it may do stands in it, for all who list. */
#define MAY_HOLD 1
#define MAY_SEAL 2
byte claim[IDS], claimed[IDS]; /* and for which name: 1 + name */

byte believer[NAMES], last_token[NAMES] = LAST_TOKEN;
byte losses = 0;
byte s_only_left = S_ONLY;
byte coordinators_left = COORDINATORS;

#ifdef NO_TOKENS
#define raise(counter, above) skip
#else
#define raise(counter, above) counter = max(counter, above)
#endif

inline begin(me, store) {
  assert(believer[n] == NOBODY);
  assert(store == 1 || !withdrawn);
  believer[n] = me;
#ifndef NO_TOKENS
  assert(token > last_token[n]);
  last_token[n] = token;
#endif
  token = 0
}

inline end_of_hold(me) {
  if :: believer[n] == me -> believer[n] = NOBODY :: else fi
}

inline give_back_s(me) {
  end_of_hold(me);
  if :: s_holder[n] == me -> s_holder[n] = NOBODY :: else fi;
  claim[me] = 0;
  claimed[me] = 0
}

inline give_back_t(me) {
  end_of_hold(me);
  if :: t_holder[n] == me -> t_holder[n] = NOBODY :: else fi
}

inline grant_s(me) {
#ifndef NO_TOKENS
  s_token[n] = max(s_token[n], FIRST_FLOOR) + 1;
  token = s_token[n];
#endif
  s_holder[n] = me
}

inline grant_t(me, above) {
#ifndef NO_TOKENS
  t_token[n] = max(t_token[n], above) + 1;
  token = t_token[n];
#endif
  t_holder[n] = me
}

inline change(to, new_floor) {
  record[n] = to;
  gen[n]++;
  floor_token[n] = new_floor
}

/* Somebody waits in S, with a claim that may hold. */
inline any_waiter(result, who) {
  who = 1;
  do
  :: who < IDS ->
     if
     :: claimed[who] == n + 1 && claim[who] == MAY_HOLD && s_holder[n] != who -> result = true
     :: else
     fi;
     who++
  :: else -> break
  od;
  who = 0
}

#define may_be_held (s_holder[n] != NOBODY && claim[s_holder[n]] == MAY_HOLD)

/* Any name of which it is true. */
#if NAMES > 1
#define one_of(step) (step(0) || step(1))
#define pick(step) if :: step(0) -> n = 0 :: step(1) -> n = 1 fi
#else
#define one_of(step) (step(0))
#define pick(step) n = 0
#endif
#define any_name(name) true
#define s_is_held(name) (s_holder[name] != NOBODY)
#define t_is_held(name) (t_holder[name] != NOBODY)

proctype Client(byte me) {
  byte n = 0, tries = 0, token = 0, seen_gen = 0, seen_floor = 0;
  bool alone = false;
  mtype seen = OPEN;

again:
  atomic {
    token = 0;
    seen_gen = 0;
    seen_floor = 0;
    n = 0;
    if
    :: tries >= TRIES -> goto over
    :: else -> tries++
    fi;
    pick(any_name)
  };
  if
  :: alone -> goto final /* remembered for ever */
  :: else
  fi;

  /* Step 1: claim in S, and look at the gate. */
#if defined(CLAIM_THEN_READ)
  atomic { claim[me] = MAY_HOLD; claimed[me] = n + 1 };
#elif defined(BROKEN_GATE_CHECKED_BEFORE_THE_CLAIM)
  seen = gate;
#endif
  atomic {
#ifndef BROKEN_GATE_CHECKED_BEFORE_THE_CLAIM
    seen = gate;
#endif
#ifdef BROKEN_GATE_NOT_CHECKED
    seen = OPEN;
#endif
    claimed[me] = n + 1;
    if
    :: seen == FINAL -> claim[me] = 0; claimed[me] = 0; alone = true
    :: seen == TURNED -> claim[me] = MAY_SEAL
    :: else -> claim[me] = MAY_HOLD
    fi;
    seen = OPEN;
    if
    :: alone -> goto final
    :: else
    fi
  };

  if
  :: atomic { record[n] == NONE && s_holder[n] == NOBODY ->
       grant_s(me);
       if
       :: claim[me] == MAY_HOLD -> begin(me, 1); goto held_s
       :: else -> goto seal
       fi }
  :: atomic { record[n] == MOVED ->
       give_back_s(me);
       seen_gen = gen[n];
       seen_floor = floor_token[n];
       goto lock_t }
  :: atomic { record[n] != CLOSING -> give_back_s(me); goto again } /* gives up, or crashed */
  fi;

held_s:
  atomic { give_back_s(me); goto again };

seal:
  /* Granted under TURNED: never holds with this claim. */
#ifdef BROKEN_NO_SEAL
  atomic { seen_gen = gate_ver; seen_floor = token; give_back_s(me); goto lock_t };
#endif
  if
#if defined(BROKEN_SEAL_WITHOUT_COMPARE)
  :: atomic { record[n] == NONE && gate == TURNED ->
#elif defined(BROKEN_SEAL_AFTER_WITHDRAWAL)
  :: atomic { record[n] == NONE && s_holder[n] == me ->
#else
  :: atomic { record[n] == NONE && s_holder[n] == me && gate == TURNED ->
#endif
       change(MOVED, token);
       give_back_s(me);
       seen_gen = gen[n];
       seen_floor = token;
       goto lock_t }
  :: atomic { give_back_s(me); goto again } /* lost, or the gate has changed, or it crashed */
  fi;

final:
  seen_floor = gate_floor;

lock_t:
  /* Step 2: lock T. */
#ifdef BROKEN_FLOOR_NOT_PASSED
  seen_floor = 0;
#endif
  if
  :: atomic { !t_closed[n] && t_holder[n] == NOBODY -> grant_t(me, seen_floor); seen_floor = 0 }
#ifdef BROKEN_NO_SEAL
  :: atomic { !alone && gate_ver != seen_gen && gen[n] != seen_gen -> goto again }
#else
  :: atomic { !alone && gen[n] != seen_gen -> goto again }
#endif
#ifndef BROKEN_CLOSED_AFTER_FINAL
  :: atomic { t_closed[n] && alone ->
       t_closed[n] = false;
       t_closed_gen[n] = 0;
       raise(t_token[n], seen_floor);
       goto lock_t }
#endif
  :: atomic { t_closed[n] && !alone ->
       if
       :: t_closed_gen[n] < seen_gen ->
          t_closed[n] = false;
          t_closed_gen[n] = 0;
          raise(t_token[n], seen_floor);
          goto lock_t
       :: else -> goto again
       fi }
  fi;
  /* Step 3: look at the record again. */
  if
#if defined(BROKEN_NO_RECHECK)
  :: atomic { t_holder[n] == me -> begin(me, 2) }
#elif defined(BROKEN_NO_SEAL)
  :: atomic { t_holder[n] == me &&
              (alone || (gate == TURNED && gate_ver == seen_gen) ||
               (record[n] == MOVED && gen[n] == seen_gen)) -> begin(me, 2) }
#else
  :: atomic { t_holder[n] == me && (alone || (record[n] == MOVED && gen[n] == seen_gen)) ->
       begin(me, 2) }
#endif
  :: atomic { give_back_t(me); goto again } /* another gen, or lost, or it crashed */
  fi;
  atomic { give_back_t(me); goto again };

over:
  alone = false
}

/* Knows T alone: it starts when the certificate is there, and passes its floor. */
proctype TargetOnly(byte me) {
  byte n = 0, tries = 0, token = 0, above = 0;

end:
#ifdef BROKEN_TARGET_ONLY_BEFORE_THE_CERTIFICATE
  gate == TURNED || gate == FINAL;
#else
  certificate;
#endif
#ifndef BROKEN_FLOOR_NOT_PASSED
  above = gate_floor;
#endif
again:
  atomic {
    token = 0;
    n = 0;
    if
    :: tries >= TRIES -> goto over
    :: else -> tries++
    fi;
    pick(any_name)
  };
lock_t:
  if
  :: atomic { !t_closed[n] && t_holder[n] == NOBODY -> grant_t(me, above); begin(me, 2) }
#ifndef BROKEN_CLOSED_AFTER_FINAL
  /* what a rollback has left there is older than the certificate: opened, in one write with it */
  :: atomic { t_closed[n] ->
       t_closed[n] = false;
       t_closed_gen[n] = 0;
       raise(t_token[n], above);
       goto lock_t }
#endif
  fi;
  atomic { give_back_t(me); goto again };
over:
  skip
}

/* Knows S alone: only a record stops it. */
proctype SourceOnly(byte me) {
  byte n = 0, tries = 0, token = 0;

again:
  atomic {
    token = 0;
    n = 0;
    if
    :: tries >= TRIES -> goto over
    :: tries > 0 -> goto over
    :: tries < TRIES -> tries++
    fi;
    pick(any_name);
    claim[me] = MAY_HOLD;
    claimed[me] = n + 1
  };
  if
  :: atomic { record[n] == NONE && s_holder[n] == NOBODY -> grant_s(me); begin(me, 1) }
#if defined(RETURNING) && !defined(NO_TOKENS)
  :: atomic { record[n] != NONE && floor_token[n] <= LAST_TOKEN -> change(NONE, 0) }
#endif
  :: true
  fi;
  atomic { give_back_s(me); goto again };
over:
  s_only_left--
}

#ifdef RETURNING
/* Has waited in T since before the earlier plan: it looks at no record. */
proctype Leftover(byte me) {
  byte n = 0, token = 0;
  if
  :: atomic { !t_closed[0] && t_holder[0] == NOBODY -> grant_t(me, 0); begin(me, 2) };
     atomic { give_back_t(me) }
  :: true
  fi
}
#endif

/* Step 5, after the gate's version was seen: who may still hold in S? `good` says that nobody may.
 * Waiters first, then the holder: a claim goes from the one to the other, never back. */
inline look_at(name) {
  atomic {
    n = name;
    if
#ifdef BROKEN_FINAL_WITH_A_NAME_IN_CLOSING
    :: record[n] != NONE
#else
    :: record[n] == MOVED
    :: record[n] == CLOSING -> good = false
#endif
    :: record[n] == NONE ->
#if defined(BROKEN_HOLDERS_LISTED_FIRST)
       if :: may_be_held -> good = false :: else fi
#elif !defined(BROKEN_LISTED_WITHOUT_WAITERS)
       any_waiter(found, who);
       if :: found -> good = false; found = false :: else fi
#endif
    fi
  };
  atomic {
    if
    :: record[n] == NONE ->
#if defined(BROKEN_HOLDERS_LISTED_FIRST)
       any_waiter(found, who);
       if :: found -> good = false; found = false :: else fi
#else
       if :: may_be_held -> good = false :: else fi
#endif
    :: else
    fi
  }
}

inline look_at_all() {
  good = true;
#ifndef BROKEN_NO_DRAIN
  look_at(0);
#if NAMES > 1
  look_at(1);
#endif
#endif
#ifndef BROKEN_SOURCE_ONLY_LEFT
  if
  :: s_only_left > 0 -> good = false
  :: else
  fi;
#endif
  n = 0
}

inline read_floor(result) {
#if defined(BROKEN_FLOOR_MISSING)
  result = 0;
#elif defined(BROKEN_FLOOR_TAKEN_AT_THE_TURN)
  result = floor_of_turn;
#elif NAMES > 1
  result = max(s_token[0], s_token[1]);
#else
  result = s_token[0];
#endif
}

inline turn(to) {
  gate = to;
  gate_ver++
}

inline turn_on() {
  turn(TURNED);
#ifdef BROKEN_FLOOR_TAKEN_AT_THE_TURN
  floor_of_turn = max(s_token[0], s_token[NAMES - 1])
#endif
}

#define can_forward(name) \
  ((gate == TURNED || (gate == OPEN && name < LISTED)) && gen[name] < CHANGES && \
   record[name] == NONE && s_holder[name] == NOBODY)
#define can_close(name) (record[name] == MOVED && may_go_back && gen[name] < CHANGES)
#define can_abort(name) \
  (record[name] == CLOSING && gen[name] < CHANGES && (gate == OPEN || gate == TURNED))
#define can_open_t(name) \
  (record[name] == MOVED && t_closed[name] && t_closed_gen[name] < gen[name])
#define is_closing(name) (record[name] == CLOSING)

#ifdef BROKEN_FINAL_BY_STATE
#define same_gate (gate == TURNED)
#else
#define same_gate (gate == TURNED && gate_ver == seen_ver)
#endif
#ifdef OPENED_BEHIND_THE_GATE
#define may_be_opened true
#else
#define may_be_opened may_go_back
#endif
#ifdef BROKEN_RECORD_REMOVED_BEHIND_THE_GATE
#define may_go_back true
#else
#define may_go_back (gate == OPEN || gate == ENDED)
#endif

/* Rollback of a name that is CLOSING: wait for T's holder, close T, open S above it. Was somebody
 * else faster, then begin again. */
inline drain(me) {
  atomic { record[n] == CLOSING -> seen_gen = gen[n]; seen_floor = floor_token[n]; token = 0 };
#ifndef BROKEN_ROLLBACK_WITHOUT_T
  if
  :: atomic { !t_closed[n] && t_holder[n] == NOBODY -> grant_t(me, seen_floor) };
#ifdef T_IS_CLOSED
     if
     :: record[n] == CLOSING && gen[n] == seen_gen
     :: atomic { !(record[n] == CLOSING && gen[n] == seen_gen) -> give_back_t(me); goto again }
     fi;
     if
     :: atomic { t_holder[n] == me ->
          t_closed[n] = true;
          t_closed_gen[n] = seen_gen;
          t_holder[n] = NOBODY }
     :: atomic { t_holder[n] != me -> goto again }
     fi
#endif
  :: atomic { t_closed[n] -> /* drained before; closed for this record, if for an older one */
       token = max(t_token[n], seen_floor);
       if
       :: t_closed_gen[n] < seen_gen -> t_closed_gen[n] = seen_gen
       :: else
       fi }
  :: atomic { gen[n] != seen_gen -> goto again }
  fi;
#endif
  if
  :: atomic { record[n] == CLOSING && gen[n] == seen_gen && may_be_opened ->
#ifndef BROKEN_S_NOT_RAISED
       raise(s_token[n], token);
#endif
       change(NONE, 0);
       give_back_t(me) }
  :: atomic { !(record[n] == CLOSING && gen[n] == seen_gen && may_be_opened) -> give_back_t(me) }
  fi
}

/* Any step of any command, whatever another left behind. It ends anywhere: what it has claimed is
 * then given back, as it would be by its lease. */
proctype Coordinator(byte me) {
  byte n = 0, who = 0, token = 0, seen_gen = 0, seen_floor = 0, seen_ver = 0;
  bool good = false, found = false;

again:
  atomic {
    n = 0;
    token = 0;
    seen_gen = 0;
    seen_floor = 0;
    seen_ver = 0;
    good = false
  };
  if
  /* died */
  :: goto over
  /* the gate */
  :: atomic { gate == OPEN && gate_ver < TURNS -> turn_on() }
  :: atomic { gate == TURNED && gate_ver < TURNS -> turn(OPEN) }
  :: atomic { gate == OPEN && gate_ver < TURNS -> turn(ENDED) }
  /* withdrawn: one name after the other is looked at */
  :: atomic { gate == ENDED && !withdrawn && record[0] == NONE -> good = true };
#if NAMES > 1
     if
     :: record[1] != NONE -> good = false
     :: else
     fi;
#endif
     withdrawn = withdrawn || good
  /* forward: by name, or because a claim from under OPEN is there */
  :: atomic { one_of(can_forward) ->
       pick(can_forward);
       seen_ver = gate_ver;
       grant_s(me);
       claim[me] = MAY_SEAL;
       claimed[me] = n + 1 };
     if
#ifdef BROKEN_SEAL_AFTER_WITHDRAWAL
     :: atomic { s_holder[n] == me && record[n] == NONE ->
#else
     :: atomic { s_holder[n] == me && record[n] == NONE && gate_ver == seen_ver ->
#endif
          change(MOVED, token);
          give_back_s(me) }
     :: atomic { give_back_s(me) }
     fi
  /* what is moved: closed, opened, or taken back */
  :: atomic { one_of(can_close) -> pick(can_close); change(CLOSING, floor_token[n]) }
  :: atomic { one_of(can_abort) -> pick(can_abort); change(MOVED, floor_token[n]) }
  :: atomic { one_of(can_open_t) ->
       pick(can_open_t);
       t_closed[n] = false;
       t_closed_gen[n] = 0;
       raise(t_token[n], floor_token[n]) }
  :: atomic { one_of(is_closing) -> pick(is_closing) };
     drain(me)
  /* finish */
#ifdef BROKEN_LISTED_BEFORE_THE_TURN
  :: atomic { gate == OPEN && gate_ver < TURNS -> seen_ver = gate_ver };
     look_at_all();
     if
     :: atomic { good && gate == OPEN && gate_ver == seen_ver -> turn_on(); seen_ver = gate_ver }
     :: else -> goto again
     fi;
#else
  :: atomic { gate == TURNED -> seen_ver = gate_ver };
     look_at_all();
     if
     :: good
     :: else -> goto again
     fi;
#endif
     read_floor(seen_floor);
     if
     :: atomic { same_gate -> turn(FINAL); gate_floor = seen_floor }
     :: atomic { !same_gate }
     fi
  :: atomic { gate == FINAL && !certificate -> certificate = true }
  fi;
  goto again;

over:
  atomic { coordinators_left-- }
}

#ifdef LAST
/* One command, run to its end when all others have ended. */
proctype Last(byte me) {
  byte n = 0, who = 0, token = 0, seen_gen = 0, seen_floor = 0, seen_ver = 0;
  bool good = false, found = false;

  coordinators_left == 0;
  if
  :: goto forward
  :: goto back
  :: gate != FINAL && gate != TURNED; goto withdraw
  fi;

withdraw:
  atomic { if :: gate == OPEN -> turn(ENDED) :: else fi };
back:
  if
  :: gate == FINAL -> goto certify
  :: gate == TURNED -> turn(OPEN)
  :: else
  fi;
again:
  if
  :: atomic { record[n] == MOVED -> change(CLOSING, floor_token[n]) }
  :: record[n] == CLOSING -> drain(me)
  :: record[n] == NONE ->
     if
     :: n < NAMES - 1 -> n++
     :: else ->
        atomic { if :: gate == ENDED -> withdrawn = true :: else fi };
        goto over
     fi
  fi;
  goto again;

forward:
  if
  :: gate == ENDED -> goto back
  :: gate == FINAL -> goto certify
  :: gate == OPEN -> turn(TURNED)
  :: gate == TURNED
  fi;
  n = 0;
next_forward:
  if
  :: atomic { record[n] == CLOSING -> change(MOVED, floor_token[n]) }
  :: atomic { record[n] == MOVED && t_closed[n] && t_closed_gen[n] < gen[n] ->
       t_closed[n] = false;
       t_closed_gen[n] = 0;
       raise(t_token[n], floor_token[n]) }
  :: else ->
     found = false;
     any_waiter(found, who);
     if
     :: record[n] == NONE && (found || may_be_held) ->
        atomic { record[n] != NONE || s_holder[n] == NOBODY ->
          if :: record[n] == NONE -> grant_s(me); change(MOVED, token); s_holder[n] = NOBODY
             :: else
          fi }
     :: else ->
        if
        :: n < NAMES - 1 -> n++
        :: else -> goto finish
        fi
     fi
  fi;
  found = false;
  goto next_forward;
finish:
  s_only_left == 0;
  seen_ver = gate_ver;
  look_at_all();
  if
  :: good
  :: else -> n = 0; goto next_forward
  fi;
  read_floor(seen_floor);
  atomic { assert(same_gate); turn(FINAL); gate_floor = seen_floor };
certify:
  certificate = true;
over:
  /* no name stays closed */
  n = 0;
  do
  :: n < NAMES ->
     assert(gate == FINAL || record[n] == NONE);
     assert(s_holder[n] != me && t_holder[n] != me);
     n++
  :: else -> break
  od
}
#endif

/* Leases end. */
proctype Time() {
  byte n = 0, who = 0;
  do
  :: atomic { losses < LOSSES && (one_of(s_is_held) || one_of(t_is_held)) ->
       losses++;
       if
       :: one_of(s_is_held) -> pick(s_is_held); who = s_holder[n]; give_back_s(who)
       :: one_of(t_is_held) -> pick(t_is_held); who = t_holder[n]; give_back_t(who)
       fi;
       who = 0;
       n = 0 }
  :: break
  od
}

init {
  byte id = 1;
  atomic {
    do
    :: id < FIRST_T_ONLY -> run Client(id); id++
    :: id >= FIRST_T_ONLY && id < FIRST_S_ONLY -> run TargetOnly(id); id++
    :: id >= FIRST_S_ONLY && id < LEFTOVER -> run SourceOnly(id); id++
#ifdef RETURNING
    :: id == LEFTOVER -> run Leftover(id); id++; t_closed[0] = true
#endif
    :: id >= FIRST_COORDINATOR && id < IDS - 1 -> run Coordinator(id); id++
    :: else -> break
    od;
#ifdef LAST
    run Last(id);
#endif
    run Time()
  }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Migration in mode move: one lock, stores S and T, clients that follow the
 * record in S, and coordinators that change it. Everybody may be slow, crash, or lose a lease, at
 * any step. Checked: one holder at most, and each holder's token above all earlier ones.
 *
 * A lease: the claim ends at the client (its local deadline) before it ends at the store, so both
 * are one step here; who was granted holds only while its claim lives. A crash is a claim that
 * nobody uses and that ends by itself.
 *
 * FINAL is a state of the record here. In dlock it is a state of the plan's gate (gate.pml), for all
 * locks at once.
 *
 * Each BROKEN_... leaves one step out, and must be found out: scripts/check-models.
 * LOSSY: T may forget a lock before its lease is over. Then two may hold inside T, by T's own word,
 * but never one in S and one in T. Such a T keeps no record; any other one is closed by a rollback:
 * a record in the lock's place there, with the gen of the CLOSING record. Whoever has a younger
 * record of S may open it.
 * T_KEEPS_NO_RECORD: T forgets nothing, and yet is not closed: all that a closed T does for those
 * of the plan, their second look does alone.
 * RETURNING: an earlier plan has brought the lock from T to S and left T closed. Its clients are
 * still there: they lock T whenever it is open, and look at no record of S.
 */
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef COORDINATORS
#define COORDINATORS 1
#endif
#ifndef TRIES
#define TRIES 2           /* claims of each client, in S or T */
#endif
#ifndef CHANGES
#define CHANGES 4         /* of the record, in all */
#endif
#ifndef LOSSES
#define LOSSES 2          /* of leases, in all */
#endif

#if !defined(LOSSY) && !defined(T_KEEPS_NO_RECORD)
#define T_IS_CLOSED
#endif
#define IDS (CLIENTS + COORDINATORS + 1)
#define NOBODY 0
#define max(a, b) ((a) > (b) -> (a) : (b))

mtype = { OPEN, MOVED, CLOSING, FINAL };

/* The record, in the place of the lock in S. */
mtype record = OPEN;
byte gen = 0, floor_token = 0, changes = 0;
mtype old_record = OPEN; /* what a lagging replica still says */
byte old_gen = 0;
bool certificate = false;

/* The stores: who holds the lock, and the newest token. */
byte s_holder = NOBODY, s_token = 0;
byte t_holder = NOBODY, t_token = 0;

#ifdef RETURNING
bool t_closed = true;
#else
bool t_closed = false;
#endif
byte t_closed_gen = 0;    /* of the record of S that it was closed for */

/* What each one still believes. */
bool s_claim[IDS], t_claim[IDS];
byte t_before[IDS];       /* how many closings the claim in T has seen */
byte closings = 0;

/* The work under the lock: 1 by S, 2 by T. */
byte holding[IDS];
byte last_token = 0, losses = 0;

inline no_other(me, other) {
  other = 1;
  do
  :: other < IDS ->
     if
     :: other != me && holding[other] != 0 ->
#ifdef LOSSY
        assert(holding[other] == holding[me])
#else
        assert(false)
#endif
     :: else
     fi;
     other++
  :: else -> break
  od
}

inline begin(me, store, token, other) {
  holding[me] = store;
  no_other(me, other);
#ifndef LOSSY
  assert(token > last_token);
#endif
  last_token = token
}

inline change(to, new_floor) {
  old_record = record;
  old_gen = gen;
  record = to;
  gen++;
  changes++;
  floor_token = new_floor
}

/* Compared with what was seen, and in the same write T is raised above the floor. */
inline open_t(seen_closed, new_floor) {
  atomic {
    if
    :: t_closed && t_closed_gen == seen_closed ->
       t_closed = false;
       t_token = max(t_token, new_floor)
    :: else
    fi
  }
}

proctype Client(byte me) {
  byte seen_closed = 0;
  byte token = 0, seen_gen = 0, seen_floor = 0, tries = 0, other = 0, read_gen = 0;
  mtype read = OPEN;
  bool good = false, alone = false;

again:
  if
  :: tries >= TRIES -> goto over
  :: else
  fi;
  alone = false;
  if
  /* Step 1: lock S. */
#ifdef BROKEN_SEAL_BESIDE_THE_LOCK
  :: record == OPEN ->
     atomic { s_holder == NOBODY ->
#else
  :: atomic { record == OPEN && s_holder == NOBODY ->
#endif
       s_token++;
       token = s_token;
       s_holder = me;
       s_claim[me] = true;
       tries++ };
     goto in_s
  :: atomic { record == MOVED || record == FINAL -> seen_gen = gen; seen_floor = floor_token }
#ifdef BROKEN_TARGET_ONLY_BEFORE_FINISH
  :: atomic { changes > 0 -> alone = true; seen_floor = 0 }
#else
  :: atomic { certificate -> alone = true; seen_floor = 0 }
#endif
#ifdef RETURNING
  :: atomic { !t_closed -> alone = true; seen_floor = 0 }
#endif
  fi;

lock_t:
  /* Step 2: lock T. */
  if
  :: atomic { !t_closed && t_holder == NOBODY && !t_claim[me] ->
#ifdef BROKEN_FLOOR_NOT_PASSED
       t_token = t_token + 1;
#else
       t_token = max(t_token, seen_floor) + 1;
#endif
       token = t_token;
       t_holder = me;
       t_claim[me] = true;
       t_before[me] = closings;
       tries++ }
  :: atomic { gen != seen_gen && !alone -> goto again }
  :: atomic { t_closed && alone -> goto again }
  :: atomic { t_closed && !alone -> seen_closed = t_closed_gen };
     if
#ifdef BROKEN_ANY_CLOSED_PLACE_IS_OPENED
     :: true -> open_t(seen_closed, seen_floor); goto lock_t
#else
     :: seen_closed < seen_gen -> open_t(seen_closed, seen_floor); goto lock_t
     :: else -> goto again
#endif
     fi
  fi;
  /* Step 3: re-check, by a linearizable read. */
  if
  :: atomic { read = record; read_gen = gen }
#ifdef BROKEN_RECHECK_FROM_A_REPLICA
  :: atomic { read = old_record; read_gen = old_gen }
#endif
  fi;
#if defined(BROKEN_NO_RECHECK)
  good = true;
#elif defined(BROKEN_CLOSING_IS_ACCEPTED)
  good = (read != OPEN);
#elif defined(BROKEN_ANY_GEN_IS_ACCEPTED)
  good = (read == MOVED || read == FINAL);
#else
  good = (read == MOVED || read == FINAL) && read_gen == seen_gen;
#endif
  if
  :: atomic { (good || alone) && t_claim[me] -> begin(me, 2, token, other) }
  :: true /* another gen; or the lease is over; or it crashed */
  fi;
  if
  :: atomic { t_claim[me] ->
       holding[me] = 0;
       t_claim[me] = false;
       if :: t_holder == me -> t_holder = NOBODY :: else fi }
  :: atomic { !t_claim[me] -> holding[me] = 0 }
  fi;
  goto again;

in_s:
  if
  :: atomic { s_claim[me] -> begin(me, 1, token, other) }
  :: true
  fi;
  if
  :: atomic { s_claim[me] ->
       holding[me] = 0;
       s_claim[me] = false;
       if :: s_holder == me -> s_holder = NOBODY :: else fi }
  :: atomic { !s_claim[me] -> holding[me] = 0 }
  fi;
  goto again;

over:
  skip
}

/* One step of the plan at a time, whatever another left behind. */
proctype Coordinator(byte me) {
  byte seen_closed = 0;
  byte token = 0, seen_gen = 0, seen_floor = 0, other = 0, steps = 0;

again:
  if
  :: changes >= CHANGES || steps > CHANGES -> goto over
  :: else -> steps++
  fi;
  if
  /* forward: lock S, then seal it if it is still held by this claim */
  :: atomic { record == OPEN && s_holder == NOBODY ->
       s_token++;
       token = s_token;
       s_holder = me;
       s_claim[me] = true };
     if
#ifdef BROKEN_SEAL_WITHOUT_COMPARE
     :: atomic { record == OPEN -> change(MOVED, token); s_holder = NOBODY; s_claim[me] = false }
#else
     :: atomic { record == OPEN && s_holder == me ->
          change(MOVED, token);
          s_holder = NOBODY;
          s_claim[me] = false }
#endif
     :: atomic { s_holder != me -> s_claim[me] = false }
     :: atomic { s_claim[me] && s_holder == me -> s_claim[me] = false; s_holder = NOBODY }
     fi
  /* ... and open T, if it is closed for an older record */
#ifdef BROKEN_OPENED_BEFORE_THE_SEAL
  :: atomic { t_closed && t_closed_gen <= gen ->
#else
  :: atomic { record == MOVED && t_closed && t_closed_gen < gen ->
#endif
       seen_closed = t_closed_gen;
       seen_floor = floor_token };
     open_t(seen_closed, seen_floor)
  /* rollback: close */
  :: atomic { record == MOVED -> change(CLOSING, floor_token); closings++ }
  /* abort: open T again */
  :: atomic { record == CLOSING -> change(MOVED, floor_token) }
  /* rollback, begun by anybody: drain T, open S above it */
  :: atomic { record == CLOSING -> seen_gen = gen; seen_floor = floor_token };
     token = 0;
#ifndef BROKEN_ROLLBACK_WITHOUT_LOCKING_T
     if
     :: atomic { !t_closed && t_holder == NOBODY ->
          t_token = max(t_token, seen_floor) + 1;
          token = t_token;
          t_holder = me;
          t_claim[me] = true };
#ifdef T_IS_CLOSED
        /* the record, read while T is held; then T's lock becomes what closes it */
        if
        :: atomic { record == CLOSING && gen == seen_gen -> skip }
        :: atomic { !(record == CLOSING && gen == seen_gen) ->
             t_claim[me] = false;
             if :: t_holder == me -> t_holder = NOBODY :: else fi;
             goto again }
        fi;
#ifndef BROKEN_T_LEFT_OPEN
        if
        :: atomic { t_holder == me ->
             t_closed = true;
             t_closed_gen = seen_gen;
             t_holder = NOBODY;
             t_claim[me] = false }
        :: atomic { t_holder != me -> t_claim[me] = false; goto again }
        fi
#endif
#else
        skip
#endif
     /* drained and closed before; T's newest token is the one under which it was */
     :: atomic { t_closed -> seen_closed = t_closed_gen; token = max(t_token, seen_floor) };
#ifndef BROKEN_NOT_CLOSED_ANEW
        if
        :: seen_closed < seen_gen ->
           if
           :: atomic { t_closed && t_closed_gen == seen_closed -> t_closed_gen = seen_gen }
           :: atomic { !(t_closed && t_closed_gen == seen_closed) -> goto again }
           fi
        :: else
        fi
#else
        skip
#endif
     :: atomic { gen != seen_gen -> goto again }
     fi;
#endif
#if defined(LOSSY) && !defined(BROKEN_NO_LEASE_WAIT)
     /* the longest lease: whoever was granted before the closing is past it */
     other = 1;
     do
     :: other <= CLIENTS -> !(t_claim[other] && t_before[other] < closings); other++
     :: else -> break
     od;
#endif
     if
     :: atomic { record == CLOSING && gen == seen_gen ->
#ifndef BROKEN_S_NOT_RAISED
          s_token = max(s_token, token);
#endif
          change(OPEN, 0) }
     :: true /* crashed, or somebody else changed it */
     fi;
     atomic { t_claim[me] = false; if :: t_holder == me -> t_holder = NOBODY :: else fi }
  /* finish: lock T above the floor, then there is no way back */
  :: atomic { record == MOVED -> seen_gen = gen; seen_floor = floor_token };
#ifndef BROKEN_T_NOT_RAISED_AT_FINISH
     if
     :: atomic { !t_closed && t_holder == NOBODY ->
          t_token = max(t_token, seen_floor) + 1;
          t_holder = me;
          t_claim[me] = true }
     :: atomic { t_closed -> goto again }
     :: atomic { gen != seen_gen -> goto again }
     fi;
#endif
     if
     :: atomic { record == MOVED && gen == seen_gen -> change(FINAL, floor_token) }
     :: true
     fi;
     atomic { t_claim[me] = false; if :: t_holder == me -> t_holder = NOBODY :: else fi }
  /* ... and say so in T */
  :: atomic { record == FINAL && !certificate -> certificate = true }
  fi;
  goto again;

over:
  skip
}

/* Leases end; a lossy store forgets; an unsuitable one loses the record. */
proctype Time() {
  byte who = 0;
  do
  :: losses < LOSSES ->
     if
     :: atomic { s_holder != NOBODY ->
          who = s_holder;
          s_claim[who] = false;
          if :: holding[who] == 1 -> holding[who] = 0 :: else fi;
          s_holder = NOBODY;
          losses++ }
     :: atomic { t_holder != NOBODY ->
          who = t_holder;
          t_claim[who] = false;
          if :: holding[who] == 2 -> holding[who] = 0 :: else fi;
          t_holder = NOBODY;
          losses++ }
#ifdef LOSSY
     :: atomic { t_holder != NOBODY -> t_holder = NOBODY; t_token = 0; losses++ }
#endif
#ifdef BROKEN_RECORD_LOST
     :: atomic { record == MOVED -> record = OPEN; losses++ }
#endif
     fi
  :: else -> break
  od
}

init {
  byte id = 1;
  atomic {
    do
    :: id <= CLIENTS -> run Client(id); id++
    :: else -> break
    od;
    do
    :: id < IDS -> run Coordinator(id); id++
    :: else -> break
    od;
    run Time()
  }
}

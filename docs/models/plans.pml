/* SPDX-License-Identifier: Apache-2.0
 *
 * Two plans, one lock that the patterns of both match, three stores. How a plan is started, and
 * ended, while the other one is, by several commands at once that end anywhere; and which plan may
 * follow which. Plan 0 leads from S to T, plan 1 wherever B_FROM and B_TO say. What a plan does
 * while it is under way: move.pml, gate.pml; here it is a seal in the lock's place, and programs
 * that follow it.
 * Checked: one holder at most; at most one plan is in effect, and stands in both lists; a program
 * whose plan is in effect is not sent elsewhere by another one; when the last command has ended,
 * each plan can be withdrawn, and nothing of it stands in the other's way (-DLAST).
 *
 * The protocol. Each store has one list of plans, in one note, changed by compare-and-set: so what
 * is checked there, and what is written, are one step.
 *   start    1. source's list: refused if another plan is there whose pattern overlaps, or if the
 *               names are not in this store, by a plan that has ended; else PENDING, with a new id,
 *               or the id of who began before
 *            2. target's list: refused if another is there, if the names are in this store, by a plan
 *               that has ended, or if one has taken them away from it and they are not known to be in
 *               the source; then what is PENDING in the source, with this id, is taken out; else
 *               written, with the id, unless a younger one is there, or the certificate
 *            3. source's list: PENDING -> IN_EFFECT, if it is there still, with this id
 *            4. the gate is made, with the id, unless one of this id, or a younger,
 *               has been there
 *   finish   1. source's list: IN_EFFECT -> FINAL; that the names are not there any more remains
 *            2. target's list: the certificate, once, for ever; the names are there
 *            3. out of the target's list, if with this id; then out of the source's
 *   withdraw 1. source's list: ENDING, with a new id if there was none
 *            2. the gate ends; that stays, with the id
 *            3. out of the target's list, if with this id or an older one; that the names are not
 *               there remains; then out of the source's; that they are there remains
 * A plan takes effect in no other way, and a step is taken only while it is IN_EFFECT. Programs whose
 * plan has ended are programs of the store where that has left the lock, and have to be gone before
 * another plan leaves it: the operator says so.
 *
 * Each BROKEN_... leaves one step out, and must be found out: scripts/check-models.
 */
#ifndef B_FROM
#define B_FROM 0
#endif
#ifndef B_TO
#define B_TO 1
#endif
#ifndef COORDINATORS
#define COORDINATORS 2
#endif
#ifndef STEPS
#define STEPS 3           /* commands begun by each coordinator */
#endif
#ifndef TRIES
#define TRIES 2           /* of each program */
#endif
#ifndef IDS
#define IDS 4             /* starts of all plans, in all */
#endif

#define PLANS 2
#define STORES 3
#define NOBODY 0
#define source(p) ((p) == 1 -> B_FROM : 0)
#define target(p) ((p) == 1 -> B_TO : 1)

mtype = { NONE, PENDING, IN_EFFECT, FINAL, ENDING };

/* Each store's list, by plan: an id, 0 for none. In the source also how far it is. */
byte source_id[PLANS], target_id[PLANS];
mtype state[PLANS] = NONE;
bool here[STORES];        /* the names are in this store, by a plan that has ended */
bool not_here[STORES];        /* the names are not in this store, by a plan that has ended */
bool finished[PLANS];     /* the gate is FINAL */
bool certified[PLANS];
byte ids = 0;
byte coordinators_left = COORDINATORS;

/* The gate; its id stays when it has ended. */
byte gate_id[PLANS];
bool open[PLANS];
bool gone[PLANS];         /* the programs that have the plan's route */

byte holder[STORES];
byte seal[STORES];        /* 1 + the plan whose record is in the lock's place */
byte believer = NOBODY;

inline begin(me) {
  assert(believer == NOBODY);
  believer = me
}

inline give_back(me) {
  q = 0;
  do
  :: q < STORES -> if :: holder[q] == me -> holder[q] = NOBODY :: else fi; q++
  :: else -> break
  od;
  q = 0;
  if :: believer == me -> believer = NOBODY :: else fi
}

/* A record of a plan that is finished stands in the way of nobody who comes from elsewhere. */
#define is_free(store) (seal[store] == 0 || finished[seal[store] - 1])

/* A program with the plan's route. */
proctype Program(byte p) {
  byte tries = 0, q = 0;
  bool final = false;
end:
  if
  :: atomic { tries < TRIES && gate_id[p] != 0 -> tries++ }
  :: atomic { tries >= TRIES -> goto over }
  :: goto over
  fi;
  if
  :: atomic { final || finished[p] -> final = true };
     if
     :: atomic { holder[target(p)] == NOBODY && is_free(target(p)) ->
          holder[target(p)] = p + 1;
          seal[target(p)] = 0;
          begin(p + 1) }
     :: true /* waits, refused */
     fi
  :: atomic { !final && !finished[p] && holder[source(p)] == NOBODY && seal[source(p)] == 0 ->
       holder[source(p)] = p + 1;
       begin(p + 1) }
  :: atomic { !final && seal[source(p)] == p + 1 ->
       if
       :: holder[target(p)] == NOBODY && is_free(target(p)) ->
          holder[target(p)] = p + 1;
          seal[target(p)] = 0
       :: else -> goto end
       fi };
     if
     :: atomic { seal[source(p)] == p + 1 -> begin(p + 1) }
     :: else
     fi
  :: atomic { !final && seal[source(p)] != 0 && seal[source(p)] != p + 1 ->
       assert(state[p] != IN_EFFECT || finished[seal[source(p)] - 1]) }
  :: true
  fi;
  atomic { give_back(p + 1); goto end };
over:
  gone[p] = true
}

/* Another plan of the pattern is in that store's list. */
inline look_for_another(store) {
  found = false;
  q = 0;
  do
  :: q < PLANS ->
     if
     :: q != p && ((source(q) == store && source_id[q] != 0) ||
                   (target(q) == store && target_id[q] != 0)) -> found = true
     :: else
     fi;
     q++
  :: else -> break
  od;
  q = 0
}

#ifdef BROKEN_TWO_LISTS
/* One of plans that lead there, one of plans that lead away: read both, write the one. */
inline look_for_another_of_my_kind(store, mine) {
  found = false;
  q = 0;
  do
  :: q < PLANS ->
     if
     :: q != p && mine(q) == store && mine##_id[q] != 0 -> found = true
     :: else
     fi;
     q++
  :: else -> break
  od;
  q = 0
}
#endif

inline no_other_plan() {
  q = 0;
  do
  :: q < PLANS -> assert(q == p || !open[q] || finished[q]); q++
  :: else -> break
  od;
  q = 0
}

#ifdef BROKEN_THE_FINISHED_ARE_FORGOTTEN
#define has_been(p) false
#else
#define has_been(p) certified[p]
#endif

/* What is in effect stands in both lists, for all who begin. */
inline is_listed() {
  assert(!open[p] || finished[p] || (source_id[p] != 0 && target_id[p] != 0))
}

inline make_gate() {
  if
#ifdef BROKEN_GATE_MADE_AGAIN
  :: !open[p] && !finished[p] ->
#else
  :: gate_id[p] < id ->
#endif
     gate_id[p] = id;
     open[p] = true;
     no_other_plan()
  :: else
  fi
}

/* Programs of other plans lock the source of this one alone. Is one there still? */
inline look_for_programs_of_others() {
  found = false;
  q = 0;
  do
  :: q < PLANS ->
     if
     :: q != p && gate_id[q] != 0 && !gone[q] -> found = true
     :: else
     fi;
     q++
  :: else -> break
  od;
  q = 0
}

/* Each command, for any plan; each may end between two of its steps. */
proctype Coordinator() {
  byte p = 0, q = 0, id = 0, steps = 0;
  bool found = false;

again:
  atomic {
    id = 0;
    p = 0;
    found = false;
    if
    :: steps >= STEPS -> goto over
    :: else -> steps++
    fi;
    if
    :: p = 0
    :: p = 1
    fi
  };
  if
  :: goto start
  :: state[p] != FINAL && (source_id[p] != 0 || target_id[p] != 0) -> goto withdraw
  :: open[p] && !finished[p] -> goto advance
  :: state[p] == FINAL || state[p] == IN_EFFECT -> goto finish
  :: goto over
  fi;

start:
#ifdef BROKEN_PUBLISHED_FIRST
  atomic {
    if
    :: ids < IDS && source_id[p] == 0 && !finished[p] -> ids++; id = ids
    :: else -> goto again
    fi;
    make_gate()
  };
#endif
#if defined(BROKEN_CHECKED_BEFORE_ENLISTED) || defined(BROKEN_TWO_LISTS)
  atomic { look_for_another(source(p)) };
  if
  :: found -> goto again
  :: else
  fi;
#endif
  atomic {
#if defined(BROKEN_TWO_LISTS)
    found = false;
#elif !defined(BROKEN_CHECKED_BEFORE_ENLISTED)
    look_for_another(source(p));
#endif
#ifndef BROKEN_STARTED_AGAIN_IN_THE_SAME_DIRECTION
    found = found || not_here[source(p)];
#endif
    if
    :: found || finished[p] -> goto again
    :: !found && !finished[p] && state[p] == NONE && ids < IDS ->
       if
       :: id == 0 -> ids++; id = ids
       :: else
       fi;
       state[p] = PENDING;
       source_id[p] = id
    :: !found && !finished[p] && (state[p] == PENDING || state[p] == IN_EFFECT) ->
       id = source_id[p]
    :: else -> goto again
    fi
  };
#if defined(BROKEN_CHECKED_BEFORE_ENLISTED) || defined(BROKEN_TWO_LISTS)
  atomic { look_for_another(target(p)) };
#endif
  atomic {
#if !defined(BROKEN_CHECKED_BEFORE_ENLISTED) && !defined(BROKEN_TWO_LISTS)
    look_for_another(target(p));
#endif
#ifdef BROKEN_TARGET_NOT_ASKED
    found = false;
#endif
#ifndef BROKEN_STARTED_AGAIN_IN_THE_SAME_DIRECTION
    found = found || here[target(p)] || (not_here[target(p)] && !here[source(p)]);
#endif
    if
    :: found -> goto refused
    :: !found && has_been(p) -> goto again
    :: !found && !has_been(p) && target_id[p] < id -> target_id[p] = id
    :: !found && !has_been(p) && target_id[p] == id
    :: else -> goto again
    fi
  };
  atomic {
    if
    :: source_id[p] == id && state[p] == PENDING -> state[p] = IN_EFFECT
    :: source_id[p] == id && state[p] == IN_EFFECT
    :: else -> goto again
    fi
  };
  atomic { make_gate(); is_listed(); goto again };
refused:
  atomic {
#ifdef BROKEN_TAKEN_OUT_WITHOUT_COMPARE
    if
    :: state[p] == PENDING || state[p] == IN_EFFECT -> state[p] = NONE; source_id[p] = 0
#else
    if
    :: state[p] == PENDING && source_id[p] == id -> state[p] = NONE; source_id[p] = 0
#endif
    :: else
    fi;
    is_listed();
    goto again
  };

withdraw:
  atomic {
    if
    :: source_id[p] != 0 && state[p] != FINAL -> state[p] = ENDING; id = source_id[p]
    /* a start that was late has left it in the target's list alone */
    :: state[p] == NONE && target_id[p] != 0 && !finished[p] && ids < IDS ->
       ids++;
       id = ids;
       source_id[p] = id;
       state[p] = ENDING
    :: else -> goto again
    fi
  };
  atomic {
    if
    :: gate_id[p] <= id && (!open[p] || seal[source(p)] != p + 1) ->
       gate_id[p] = id;
       open[p] = false
    :: else -> goto again
    fi
  };
  atomic {
    if
#ifdef BROKEN_ID_NOT_COMPARED
    :: target_id[p] != 0 ->
#else
    :: target_id[p] != 0 && target_id[p] <= id ->
#endif
       target_id[p] = 0;
#ifndef BROKEN_WITHDRAWN_WITHOUT_A_MARK
       not_here[target(p)] = true
#endif
    :: else
    fi;
    is_listed()
  };
  atomic {
    if
    :: state[p] == ENDING && source_id[p] == id ->
       state[p] = NONE;
       source_id[p] = 0;
#ifndef BROKEN_WITHDRAWN_WITHOUT_A_MARK
       here[source(p)] = true
#endif
    :: else
    fi;
    goto again
  };

advance:
  if
  :: atomic { open[p] && !finished[p] && holder[source(p)] == NOBODY && is_free(source(p)) ->
       seal[source(p)] = p + 1 }
  :: atomic { open[p] && !finished[p] && seal[source(p)] == p + 1 && holder[target(p)] == NOBODY ->
       seal[source(p)] = 0 }
  :: else
  fi;
  goto again;

finish:
  atomic {
    found = !(open[p] && seal[source(p)] == p + 1);
#ifndef BROKEN_PROGRAMS_OF_OTHERS_LEFT
    if
    :: !found && !finished[p] -> look_for_programs_of_others()
    :: else
    fi;
#endif
    if
    :: state[p] == IN_EFFECT && !found ->
       state[p] = FINAL;
       finished[p] = true;
       not_here[source(p)] = true;
       here[source(p)] = false
    :: state[p] == FINAL
    :: else -> goto again
    fi;
    id = source_id[p]
  };
  atomic { if :: !certified[p] -> certified[p] = true; not_here[target(p)] = false; here[target(p)] = true
     :: else fi };
  atomic { if :: target_id[p] == id -> target_id[p] = 0 :: else fi };
  atomic {
    if
    :: state[p] == FINAL && source_id[p] == id -> state[p] = NONE; source_id[p] = 0
    :: else
    fi;
    goto again
  };
over:
  coordinators_left--
}

#ifdef LAST
/* When all others have ended: each plan can be withdrawn, or its finish brought to its end, and
 * nothing of it stands in the way of others. */
proctype Last() {
  byte p = 0, q = 0;
  coordinators_left == 0;
  do
  :: p < PLANS ->
     atomic {
       if
       :: state[p] == FINAL -> state[p] = NONE; source_id[p] = 0; target_id[p] = 0
       :: else
       fi;
       if
       :: state[p] == NONE && target_id[p] != 0 && !finished[p] ->
          source_id[p] = IDS + 1;
          state[p] = ENDING
       :: state[p] != NONE -> state[p] = ENDING
       :: else
       fi;
       if
       :: state[p] == ENDING ->
          assert(gate_id[p] <= source_id[p]);
          open[p] = false;
          if
          :: target_id[p] <= source_id[p] -> target_id[p] = 0
          :: else
          fi;
          source_id[p] = 0;
          state[p] = NONE
       :: else
       fi;
       assert(source_id[p] == 0 && target_id[p] == 0);
       assert(!open[p] || finished[p])
     };
     p++
  :: else -> break
  od
}
#endif

init {
  byte id = 0;
  atomic {
    do
    :: id < PLANS -> run Program(id); id++
    :: else -> break
    od;
    id = 0;
    do
    :: id < COORDINATORS -> run Coordinator(); id++
    :: else -> break
    od;
#ifdef LAST
    run Last();
#endif
    id = 0
  }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Migration with a leased gate: a plan moves its locks between S and T, each of which may forget its
 * locks. The model has one lock: the rule is the same for each name, and the gate is all that names
 * share. The gate is one note in a store that does not forget (T, or a third one):
 *
 *     S_ALONE --forward--> S_THEN_T --W--> T_ALONE --finish--> FINAL
 *        ^                    |              |  ^
 *        '------at once-------'             back '---at once---.
 *        ^                                   v                 |
 *        '----------------W-------------- T_THEN_S ------------'
 *
 * A coordinator makes each change with a compare-and-set of the whole text. Versions never repeat.
 * W: the coordinator has seen that version stand for LIMIT ticks of its own clock.
 *
 * A program reads the gate regularly. A reading counts from before its request was sent.
 * - A hold in S alone is believed while a reading of S_ALONE is younger than LIMIT.
 * - A hold in T alone is believed while a reading of T_ALONE is younger than LIMIT.
 * - A hold in both needs no reading: it excludes every other hold in the one store or in the other.
 * A hold in S alone acquires the lock in T too when it reads that the gate has turned, and one in T
 * alone that in S. So no turn ends a hold. It remains a hold in both until a reading says that one
 * store is enough.
 *
 * Time is discrete. LIMIT = L + DRIFT: a slow program's clock counts L in that time. So the
 * coordinator waits for L and the margin by its own clock. The state has no dates: it has the
 * remaining time of each belief and the age of each request. The store executes a request to the gate
 * when it is sent, and the answer arrives at any time later. A request that is executed later would
 * return a newer text and would count from the same time, so it adds no case. A program is granted a
 * claim when it continues with it, and may believe it at any time later. A lease ends for the program
 * before it ends in the store; here both are one step, as in move.pml. What a crash or a late request
 * leaves in a store only excludes others (LEFTOVER, with -DLAST).
 *
 * S_FORGETS, T_FORGETS: that store forgets a lock at any time, any number of times, and the holder is
 * not notified. Checked:
 * - Two programs believe at once only through a store that both have and that has forgotten the lock
 *   of one of them. So there is never one hold in S alone beside one in T alone, and no second holder
 *   while no store forgets.
 * - -DTOKENS: tokens rise (below).
 * - -DLAST: each program gets the lock once more after the last coordinator ended anywhere. Otherwise
 *   the search finds an invalid end state.
 * - -DPROMPT: programs that are never late and a gate that answers. Then no hold is ended, however
 *   long it lasts and wherever the gate turns.
 *
 * Each BROKEN_... leaves one step out, and the search must find an error: scripts/check-models.
 */
#ifndef PROGRAMS
#define PROGRAMS 2        /* they have the route */
#endif
#ifndef LEGACY
#define LEGACY 0          /* 1: one knows S alone; it ends at any time, and does not return */
#endif
#ifndef T_ONLY
#define T_ONLY 0          /* 1: one knows T alone; it starts when the gate is FINAL */
#endif
#ifndef COORDINATORS
#define COORDINATORS 1    /* take any step, in any direction; end anywhere; start again without memory */
#endif
#ifndef TURNS
#define TURNS 6           /* changes of the gate in one run */
#endif
#ifndef L
#define L 1
#endif
#ifndef DRIFT
#define DRIFT 1
#endif
#ifndef TRIES
#define TRIES 3           /* claims of each program, with TOKENS */
#endif
#ifndef STEP
#define STEP 1            /* how far the ceiling is raised above the needed value */
#endif

#define LIMIT (L + DRIFT)
#ifdef BY_LEASE
/* Another rule: a hold that is granted or renewed under a valid reading is valid for a lease. */
#define LEASE 2
#endif

/* How long a coordinator waits. */
#if defined(BROKEN_NO_WAIT)
#define W 0
#elif defined(BROKEN_NO_MARGIN_FOR_DRIFT)
#define W L
#elif defined(BY_LEASE) && !defined(BROKEN_LONGEST_LEASE_NOT_WAITED)
#define W (LIMIT + LEASE)
#else
#define W LIMIT
#endif

#define S_ALONE 1
#define S_THEN_T 2
#define T_ALONE 3
#define T_THEN_S 4
#define FINAL 5

#define LEGACY_ID (PROGRAMS + 1)
#define T_ONLY_ID (PROGRAMS + 1 + LEGACY)
#define IDS (PROGRAMS + 1 + LEGACY + T_ONLY)
#define NOBODY 0
#define LEFTOVER IDS
#define max(a, b) ((a) > (b) -> (a) : (b))

/* The gate: its version, and the state of each version. */
byte ver = 0;
byte mode_of[TURNS + 1];

byte s_holder = NOBODY, t_holder = NOBODY;

/* Programs. A hold is 1 in S, 2 in T, 3 in both. */
byte hold[IDS];
byte left[IDS];           /* ticks until a hold in one store ends */
bool s_has[IDS], t_has[IDS];          /* granted claims that it knows */
bool s_robbed[IDS], t_robbed[IDS];    /* the store has forgotten them since */
byte view[IDS], view_left[IDS];       /* 1 + the version of a valid reading; 0: none */
byte asked[IDS], age[IDS];            /* 1 + the version in an answer that is due; 0: none */
#ifdef BROKEN_STARTS_WITH_AN_OLD_TEXT
byte kept[IDS];
#endif

/* Coordinators: 1 + the version that was seen, how long it has stood, and the pending request. */
byte seen[COORDINATORS + 1], waited[COORDINATORS + 1];
byte from_ver[COORDINATORS + 1], to_mode[COORDINATORS + 1];
byte over = 0;
bool legacy_gone = (LEGACY == 0);

#define mode(me) (view[me] == 0 -> 0 : mode_of[view[me] - 1])
#define gate (mode_of[ver])
#define all_over (over == COORDINATORS)

#ifdef TOKENS
/* The counters of S and T, and the gate's ceiling. A program shows no token above the ceiling: it
 * raises the ceiling first, with a compare-and-set. When locking in the other store alone begins, the
 * ceiling becomes the floor there. A hold in both shows the token of its first store.
 * Assumed: a counter is not lost, or it starts again above (from a clock). */
byte s_token = 0, t_token = 0, ceiling = 1;
byte floor_of[TURNS + 1];
byte s_tok[IDS], t_tok[IDS], tries[IDS];
bool spent[IDS];
byte view_ceiling[IDS], asked_ceiling[IDS];
byte last = 0;            /* the highest token that was shown */
byte last_t = 0;          /* the highest of a hold in T alone */
bool forgot = false;
#define view_floor(me) (view[me] == 0 -> 0 : floor_of[view[me] - 1])
#ifdef BROKEN_FLOOR_NOT_PASSED
#define is_above_floor(me, token) true
#define claim_above(me) 0
#else
#define is_above_floor(me, token) (token > view_floor(me))
#define claim_above(me) view_floor(me)
#endif
#ifdef BROKEN_CEILING_NOT_KEPT
#define is_below_ceiling(me, token) true
#else
#define is_below_ceiling(me, token) (token <= view_ceiling[me] || mode(me) == FINAL)
#endif
#ifdef BROKEN_SECOND_TOKEN_NOT_COMPARED
#define second_is_below(me, token) true
#else
#define second_is_below(me, token) is_below_ceiling(me, token)
#endif
#define may_try(me) (tries[me] < TRIES)
#define may_show_s(me) (!spent[me] && is_above_floor(me, s_tok[me]) && is_below_ceiling(me, s_tok[me]))
#define may_show_t(me) (!spent[me] && is_above_floor(me, t_tok[me]) && is_below_ceiling(me, t_tok[me]))
#define may_show_s_of_both(me) (may_show_s(me) && second_is_below(me, t_tok[me]))
#define may_show_t_of_both(me) (may_show_t(me) && second_is_below(me, s_tok[me]))
#define s_forgot forgot = true
#define t_forgot forgot = true
inline shows(me, token, where) {
  /* The token of a hold in T alone is above all earlier ones, that in S alone above all in T alone. */
  if
  :: where == 2 ->
#ifndef T_FORGETS
     assert(token > last)
#else
     skip
#endif
  :: where == 1 -> assert(token > last_t)
  :: else
  fi;
  assert(forgot || token > last);
  last = max(last, token);
  if :: where == 2 -> last_t = max(last_t, token) :: else fi
}
#else
#define may_try(me) true
#define may_show_s(me) true
#define may_show_t(me) true
#define may_show_s_of_both(me) true
#define may_show_t_of_both(me) true
#define s_forgot skip
#define t_forgot skip
#define shows(me, token, where) skip
#endif

#ifdef WITNESS
/* One hold is in S alone, both, T alone, both, S alone. The error shows that this way exists. */
byte way[IDS];
#define step_of_way(me, from) if :: way[me] == from -> way[me]++ :: else fi
#define way_is_over(me) way[me] = 0
#else
#define step_of_way(me, from) skip
#define way_is_over(me) skip
#endif

/* Checks that no two programs believe at once. */
inline look(me) {
  o = 1;
  do
  :: o < IDS ->
     if
     :: o != me && hold[o] != 0 ->
        assert((hold[me] & hold[o]) != 0);                                  /* S alone, T alone */
        assert((hold[me] & hold[o] & 1) == 0 || s_robbed[me] || s_robbed[o]);
        assert((hold[me] & hold[o] & 2) == 0 || t_robbed[me] || t_robbed[o])
     :: else
     fi;
     o++
  :: else -> break
  od;
  o = 0
}

inline free_s(me) {
  if
  :: s_holder == me ->
#ifdef LAST
     s_holder = LEFTOVER /* the release is late or lost */
#else
     s_holder = NOBODY
#endif
  :: else
  fi;
  s_has[me] = false;
  s_robbed[me] = false;
#ifdef TOKENS
  s_tok[me] = 0
#endif
}

inline free_t(me) {
  if
  :: t_holder == me ->
#ifdef LAST
     t_holder = LEFTOVER
#else
     t_holder = NOBODY
#endif
  :: else
  fi;
  t_has[me] = false;
  t_robbed[me] = false;
#ifdef TOKENS
  t_tok[me] = 0
#endif
}

/* The belief ends. The claims remain, and with TOKENS they are not believed again, because their token
 * was shown. Without TOKENS they may be, which does no harm. */
inline lose(me) {
  way_is_over(me);
#ifdef TOKENS
  spent[me] = true;
#endif
  hold[me] = 0;
  left[me] = 0
}

inline give_back(me) {
  way_is_over(me);
  hold[me] = 0;
  left[me] = 0;
#ifdef TOKENS
  spent[me] = false;
#endif
  free_s(me);
  free_t(me)
}

/* Which claims may be granted. Without LAST, PROMPT and TOKENS: any, under any reading or none. */
#if defined(LAST) || defined(PROMPT) || defined(TOKENS)
#if defined(BROKEN_T_FIRST_ALWAYS)
#define claims_s(me) (mode(me) == S_ALONE || ((mode(me) == S_THEN_T || mode(me) == T_THEN_S) && t_has[me]))
#define claims_t(me) (mode(me) >= S_THEN_T)
#define is_half(me) (mode(me) == S_THEN_T && s_has[me] && !t_has[me])
#elif defined(BROKEN_EITHER_ORDER)
#define claims_s(me) (mode(me) == S_ALONE || mode(me) == S_THEN_T || mode(me) == T_THEN_S)
#define claims_t(me) (mode(me) >= S_THEN_T)
#define is_half(me) false
#elif defined(BROKEN_NO_SECOND_LOCK)
#define claims_s(me) (mode(me) == S_ALONE)
#define claims_t(me) (mode(me) == T_ALONE || mode(me) == FINAL)
#define is_half(me) (mode(me) == S_THEN_T && (s_has[me] || t_has[me]))
#else
#define claims_s(me) (mode(me) == S_ALONE || mode(me) == S_THEN_T || (mode(me) == T_THEN_S && t_has[me]))
#define claims_t(me) (mode(me) >= T_ALONE || (mode(me) == S_THEN_T && s_has[me]))
#define is_half(me) (mode(me) == S_THEN_T && t_has[me] && !s_has[me])
#endif
#else
#define claims_s(me) true
#define claims_t(me) true
#define is_half(me) false
#endif

/* Its claims do not fit its reading: it starts again. */
#define is_misfit(me) (hold[me] == 0 && \
  ((mode(me) == S_ALONE && t_has[me]) || is_half(me) || \
   ((mode(me) == T_ALONE || mode(me) == FINAL) && s_has[me]) || \
   (mode(me) == T_THEN_S && s_has[me] && !t_has[me])))

inline start_left(me) {
#ifdef BY_LEASE
  left[me] = LEASE
#else
  left[me] = view_left[me]
#endif
}

proctype Program(byte me) {
  byte o = 0;
  bool done = false;
  do
  /* It reads the gate. */
#ifdef LAST
  :: atomic { asked[me] == 0 && (!all_over || view[me] != ver + 1) ->
#elif defined(PROMPT)
  :: atomic { asked[me] == 0 && (view[me] != ver + 1 || view_left[me] < LIMIT) ->
#else
  :: atomic { asked[me] == 0 ->
#endif
#ifdef BROKEN_READ_FROM_A_REPLICA
       if
       :: asked[me] = 1 + ver
       :: ver > 0 -> asked[me] = ver
       fi;
#else
       asked[me] = 1 + ver;
#endif
#ifdef TOKENS
       asked_ceiling[me] = ceiling;
#endif
       age[me] = 0 }
  :: atomic { asked[me] != 0 ->
       view[me] = asked[me];
#ifdef BROKEN_COUNTED_FROM_THE_ANSWER
       view_left[me] = LIMIT;
#else
       view_left[me] = LIMIT - age[me];
#endif
#ifdef BROKEN_STARTS_WITH_AN_OLD_TEXT
       kept[me] = asked[me];
#endif
#ifdef TOKENS
       view_ceiling[me] = asked_ceiling[me];
       asked_ceiling[me] = 0;
#endif
       asked[me] = 0;
       age[me] = 0;
       if
#ifndef BY_LEASE
#ifdef BROKEN_A_TURNED_GATE_CONFIRMS
       :: hold[me] == 1 && (mode(me) == S_ALONE || mode(me) == S_THEN_T) ->
#else
       :: hold[me] == 1 && mode(me) == S_ALONE ->
#endif
          left[me] = max(left[me], view_left[me])
       :: hold[me] == 2 && (mode(me) == T_ALONE || mode(me) == FINAL) ->
          left[me] = max(left[me], view_left[me])
#endif
       :: else
       fi }

  /* It locks. */
  :: atomic { !s_has[me] && s_holder == NOBODY && claims_s(me) && may_try(me) && hold[me] != 3 && !done ->
       s_holder = me;
       s_has[me] = true;
#ifdef TOKENS
       tries[me]++;
       s_token = max(s_token, claim_above(me)) + 1;
       s_tok[me] = s_token
#endif
     }
  :: atomic { !t_has[me] && t_holder == NOBODY && claims_t(me) && may_try(me) && hold[me] != 3 && !done ->
       t_holder = me;
       t_has[me] = true;
#ifdef TOKENS
       tries[me]++;
       t_token = max(t_token, claim_above(me)) + 1;
       t_tok[me] = t_token
#endif
     }

  /* It believes. */
  :: atomic { hold[me] == 0 && s_has[me] && mode(me) == S_ALONE && may_show_s(me) ->
       hold[me] = 1;
       step_of_way(me, 0);
       start_left(me);
       look(me);
       shows(me, s_tok[me], 1);
       done = all_over }
  :: atomic { hold[me] == 0 && t_has[me] && (mode(me) == T_ALONE || mode(me) == FINAL) &&
              may_show_t(me) ->
       hold[me] = 2;
       start_left(me);
       look(me);
       shows(me, t_tok[me], 2);
       done = all_over }
#ifndef STALL
  :: atomic { hold[me] == 0 && s_has[me] && t_has[me] && mode(me) == S_THEN_T && may_show_s_of_both(me) ->
       hold[me] = 3;
       look(me);
#ifdef BROKEN_SECOND_TOKEN_SHOWN
       shows(me, t_tok[me], 3);
#else
       shows(me, s_tok[me], 3);
#endif
       done = all_over }
  :: atomic { hold[me] == 0 && s_has[me] && t_has[me] && mode(me) == T_THEN_S && may_show_t_of_both(me) ->
       hold[me] = 3;
       look(me);
       shows(me, t_tok[me], 3);
       done = all_over }
#endif

  /* A hold in one store becomes a hold in both ... */
  :: atomic { (hold[me] == 1 && t_has[me]) || (hold[me] == 2 && s_has[me]) ->
#ifdef BROKEN_THE_FIRST_IS_GIVEN_UP_AT_ONCE
       if
       :: hold[me] == 1 && mode(me) == S_THEN_T -> free_s(me); hold[me] = 2; left[me] = LIMIT
       :: else -> hold[me] = 3; left[me] = 0
       fi;
#else
       hold[me] = 3;
       left[me] = 0;
#endif
       step_of_way(me, 3);
       step_of_way(me, 1);
       look(me) }
  /* ... and a hold in one store when the reading says that one is enough. */
  :: atomic { hold[me] == 3 && s_has[me] && t_has[me] && mode(me) == S_ALONE ->
       free_t(me);
       hold[me] = 1;
#ifdef WITNESS
       assert(way[me] != 4);
#endif
       start_left(me);
       look(me) }
  :: atomic { hold[me] == 3 && s_has[me] && t_has[me] && (mode(me) == T_ALONE || mode(me) == FINAL) ->
       free_s(me);
       hold[me] = 2;
       step_of_way(me, 2);
       start_left(me);
       look(me) }
#ifdef BY_LEASE
  :: atomic { (hold[me] == 1 && mode(me) == S_ALONE) ||
              (hold[me] == 2 && (mode(me) == T_ALONE || mode(me) == FINAL)) -> left[me] = LEASE }
#endif

#ifdef TOKENS
  /* It raises the ceiling if its text is the present one. */
  :: atomic { hold[me] == 0 && view[me] == ver + 1 && view_ceiling[me] == ceiling &&
              max(s_tok[me], t_tok[me]) > ceiling ->
       ceiling = max(s_tok[me], t_tok[me]) + STEP;
       view_ceiling[me] = ceiling }
#endif

  /* It releases or gives up; or it dies and starts again. */
#if defined(TOKENS)
  :: atomic { s_has[me] || t_has[me] -> give_back(me) }
  :: atomic { false ->
#elif defined(LAST)
  :: atomic { hold[me] != 0 || is_misfit(me) -> give_back(me) }
  :: atomic { !all_over && (s_has[me] || t_has[me] || view[me] != 0) ->
#elif defined(PROMPT)
  :: atomic { hold[me] != 0 || is_misfit(me) -> give_back(me) }
  :: atomic { false ->
#else
  :: atomic { s_has[me] || t_has[me] -> give_back(me) }
  :: atomic { s_has[me] || t_has[me] || view[me] != 0 || asked[me] != 0 ->
#endif
       give_back(me);
#ifdef BROKEN_STARTS_WITH_AN_OLD_TEXT
       view[me] = kept[me];
       view_left[me] = (kept[me] == 0 -> 0 : LIMIT);
#else
       view[me] = 0;
       view_left[me] = 0;
#endif
#ifdef TOKENS
       view_ceiling[me] = 0;
       asked_ceiling[me] = 0;
#endif
       asked[me] = 0;
       age[me] = 0 }
#ifdef LAST
  :: atomic { all_over && done && hold[me] == 0 && !s_has[me] && !t_has[me] -> break }
#endif
  od
}

#if LEGACY
proctype Legacy(byte me) {
  byte o = 0;
  do
  :: atomic { s_holder == NOBODY -> s_holder = me; s_has[me] = true };
     atomic {
       if
       :: s_has[me] -> hold[me] = 1; look(me)
       :: else
       fi
     };
     atomic { give_back(me) }
  :: legacy_gone = true; break
  od
}
#endif

#if T_ONLY
proctype TargetOnly(byte me) {
  byte o = 0;
#ifdef BROKEN_TARGET_ONLY_BEFORE_THE_END
  gate == S_THEN_T;
#else
  gate == FINAL;
#endif
  do
  :: atomic { t_holder == NOBODY -> t_holder = me; t_has[me] = true };
     atomic {
       if
       :: t_has[me] -> hold[me] = 2; look(me)
       :: else
       fi
     };
     atomic { give_back(me) }
  od
}
#endif

#ifdef BROKEN_LEGACY_IS_LEFT
#define is_legacy_gone true
#else
#define is_legacy_gone legacy_gone
#endif
#ifdef BROKEN_ROLLBACK_WITHOUT_WAIT
#define back_w 0
#else
#define back_w W
#endif

#ifdef ARRIVES
#define may_be_left (gate != S_THEN_T && gate != T_THEN_S)
#else
#define may_be_left true
#endif

/* Any next step. The store may execute the request at any time later, also after the coordinator died. */
inline send(me, to) {
  from_ver[me] = seen[me];
  to_mode[me] = to
}

proctype Coordinator(byte me) {
  do
  /* It reads the gate, at its start or when another version is there. The answer counts. */
  :: atomic { !all_over && seen[me] != ver + 1 && ver < TURNS ->
       seen[me] = ver + 1;
#ifndef BROKEN_WAIT_OF_ANOTHER_VERSION
       waited[me] = 0
#endif
     }
  :: atomic { seen[me] != 0 && from_ver[me] == 0 && ver < TURNS ->
       if
       :: mode_of[seen[me] - 1] == S_ALONE -> send(me, S_THEN_T)
#ifndef FORWARD
       :: mode_of[seen[me] - 1] == S_THEN_T -> send(me, S_ALONE)
#endif
       :: mode_of[seen[me] - 1] == S_THEN_T && waited[me] >= W && is_legacy_gone -> send(me, T_ALONE)
#ifndef FORWARD
       :: mode_of[seen[me] - 1] == T_ALONE -> send(me, T_THEN_S)
#endif
#ifndef NO_FINISH
       :: mode_of[seen[me] - 1] == T_ALONE -> send(me, FINAL)
#endif
       :: mode_of[seen[me] - 1] == T_THEN_S -> send(me, T_ALONE)
       :: mode_of[seen[me] - 1] == T_THEN_S && waited[me] >= back_w -> send(me, S_ALONE)
       :: else
       fi }
  /* It dies. It starts again without memory. */
  :: atomic { seen[me] != 0 -> seen[me] = 0;
#ifndef BROKEN_WAIT_OF_ANOTHER_VERSION
       waited[me] = 0
#endif
     }
  /* The store executes the request, or the request is lost. */
  :: atomic { from_ver[me] != 0 ->
       if
#ifdef BROKEN_COMPARED_BY_STATE
       :: mode_of[from_ver[me] - 1] == gate && ver < TURNS ->
#else
       :: from_ver[me] == ver + 1 && ver < TURNS ->
#endif
#ifdef TOKENS
          if
          :: (gate == S_THEN_T && to_mode[me] == T_ALONE) || (gate == T_THEN_S && to_mode[me] == S_ALONE) ->
#if defined(BROKEN_NO_FLOOR)
             floor_of[ver + 1] = 0;
#elif defined(BROKEN_NO_FLOOR_ON_THE_WAY_BACK)
             floor_of[ver + 1] = (to_mode[me] == T_ALONE -> ceiling : 0);
#else
             floor_of[ver + 1] = ceiling;
#endif
             ceiling = ceiling + STEP
          :: else -> floor_of[ver + 1] = floor_of[ver]
          fi;
#endif
          mode_of[ver + 1] = to_mode[me];
          ver++
       :: else
       fi;
       from_ver[me] = 0;
       to_mode[me] = 0 }
#ifdef BROKEN_THE_GATE_IS_FORGOTTEN
  :: atomic { gate != S_ALONE && ver < TURNS -> mode_of[ver + 1] = S_ALONE; ver++ }
#endif
#ifdef LAST
  :: atomic { from_ver[me] == 0 && may_be_left -> seen[me] = 0; waited[me] = 0; over++; break }
#endif
  od
}

#ifdef PROMPT
/* Time passes only when no program has something to do. */
#ifdef BROKEN_NO_SECOND_LOCK
#define takes_second false
#else
#define takes_second true
#endif
#define is_settled(p) (asked[p] == 0 && view[p] == ver + 1 && view_left[p] == LIMIT && !is_misfit(p) && \
  !(takes_second && hold[p] == 1 && !t_has[p] && mode(p) == S_THEN_T && t_holder == NOBODY) && \
  !(takes_second && hold[p] == 2 && !s_has[p] && mode(p) == T_THEN_S && s_holder == NOBODY) && \
  !(hold[p] == 1 && t_has[p]) && !(hold[p] == 2 && s_has[p]))
#define may_tick (is_settled(1) && is_settled(2))
#else
#define may_tick !all_over
#endif

#ifdef BROKEN_LOOKED_AT_WHEN_GRANTED_ONLY
#define may_end false
#else
#define may_end true
#endif

/* Time, leases, and stores that forget. */
proctype World() {
  byte p = 0;
  do
  :: atomic { may_tick ->
       p = 1;
       do
       :: p <= PROGRAMS ->
          if
          :: view[p] != 0 && mode(p) != FINAL ->
             view_left[p]--;
             if
             :: view_left[p] == 0 -> view[p] = 0;
#ifdef TOKENS
                view_ceiling[p] = 0
#endif
             :: else
             fi
          :: else
          fi;
          if
          :: may_end && (hold[p] == 1 || hold[p] == 2) && left[p] > 0 && !(hold[p] == 2 && mode(p) == FINAL) ->
             left[p]--;
             if
             :: left[p] == 0 ->
#ifdef PROMPT
                assert(false); /* a hold was ended */
#endif
                lose(p)
             :: else
             fi
          :: else
          fi;
          if
          :: asked[p] != 0 ->
             age[p]++;
             if
#ifdef BROKEN_COUNTED_FROM_THE_ANSWER
             :: age[p] > LIMIT -> age[p] = LIMIT
#else
             :: age[p] == LIMIT -> asked[p] = 0; age[p] = 0;
#ifdef TOKENS
                asked_ceiling[p] = 0
#endif
#endif
             :: else
             fi
          :: else
          fi;
          p++
       :: else -> break
       od;
       p = 1;
       do
       :: p <= COORDINATORS ->
          if
          :: seen[p] != 0 && waited[p] < W &&
             (mode_of[seen[p] - 1] == S_THEN_T || mode_of[seen[p] - 1] == T_THEN_S) -> waited[p]++
          :: else
          fi;
          p++
       :: else -> break
       od;
       p = 0 }
#if !defined(PROMPT) && !defined(TOKENS)
  /* A lease or session ends. With TOKENS that is the same as giving up. */
  :: atomic { !all_over && s_holder != NOBODY && s_holder < IDS ->
       p = s_holder;
       if
#ifdef BROKEN_HALF_LOST_IS_KEPT
       :: hold[p] == 1 -> lose(p)
#else
       :: (hold[p] & 1) != 0 -> lose(p)
#endif
       :: else
       fi;
       free_s(p);
       s_holder = NOBODY;
       p = 0 }
  :: atomic { !all_over && t_holder != NOBODY && t_holder < IDS ->
       p = t_holder;
       if
       :: (hold[p] & 2) != 0 -> lose(p)
       :: else
       fi;
       free_t(p);
       t_holder = NOBODY;
       p = 0 }
#endif
#ifdef LAST
  :: atomic { s_holder == LEFTOVER -> s_holder = NOBODY }
  :: atomic { t_holder == LEFTOVER -> t_holder = NOBODY }
  :: atomic { !all_over && s_holder == NOBODY -> s_holder = LEFTOVER }
  :: atomic { !all_over && t_holder == NOBODY -> t_holder = LEFTOVER }
  :: atomic { all_over && s_holder != LEFTOVER && t_holder != LEFTOVER && timeout -> break }
#endif
#ifdef S_FORGETS
  :: atomic { s_holder != NOBODY && s_holder < IDS -> s_robbed[s_holder] = true; s_holder = NOBODY; s_forgot }
#endif
#ifdef T_FORGETS
  :: atomic { t_holder != NOBODY && t_holder < IDS -> t_robbed[t_holder] = true; t_holder = NOBODY; t_forgot }
#endif
  od
}

init {
  byte id = 1;
  atomic {
    mode_of[0] = S_ALONE;
    do
    :: id <= PROGRAMS -> run Program(id); id++
    :: else -> break
    od;
#if LEGACY
    run Legacy(LEGACY_ID);
#endif
#if T_ONLY
    run TargetOnly(T_ONLY_ID);
#endif
    id = 1;
    do
    :: id <= COORDINATORS -> run Coordinator(id); id++
    :: else -> break
    od;
    run World();
    id = 0
  }
}

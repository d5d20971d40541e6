/* SPDX-License-Identifier: Apache-2.0
 *
 * Migration in mode dual: one lock, stores S and T, and processes of a fixed
 * phase: 0 locks S, 1 locks S and then T, 2 locks T. Who takes part registers under a lease, in one
 * step with the check that the window admits its phase; a coordinator moves the window. Checked:
 * one holder at most, and each holder's token above all earlier ones. Processes may be slow, crash,
 * lose leases and registrations, and start again in another phase.
 *
 * Each BROKEN_... leaves one step out, and must be found out: scripts/check-models.
 * BROKEN_T_FIRST_... shows as processes that wait for each other for ever.
 */
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef TRIES
#define TRIES 2           /* claims of each client */
#endif
#ifndef STARTS
#define STARTS 2          /* of each client, in any phase */
#endif
#ifndef CHANGES
#define CHANGES 4         /* of the window, in all */
#endif
#ifndef LOSSES
#define LOSSES 2          /* of leases and registrations, in all */
#endif

#define IDS (CLIENTS + 1)
#define NOBODY 0
#define max(a, b) ((a) > (b) -> (a) : (b))

/* The window: the phases that are admitted. */
byte lo = 0, hi = 0, floor_token = 0, changes = 0;
bool registered[IDS];
byte phase_of[IDS];

byte s_holder = NOBODY, s_token = 0;
byte t_holder = NOBODY, t_token = 0;
bool s_claim[IDS], t_claim[IDS];

bool holding[IDS];
byte last_token = 0, losses = 0;

#ifdef BROKEN_HOLD_OUTLIVES_REGISTRATION
#define admitted(me) true
#else
#define admitted(me) registered[me]
#endif

inline no_other(me, other) {
  other = 1;
  do
  :: other < IDS -> assert(other == me || !holding[other]); other++
  :: else -> break
  od
}

inline begin(me, token, other) {
  holding[me] = true;
  no_other(me, other);
  assert(token > last_token);
  last_token = token
}

inline give_back(me) {
  atomic {
    holding[me] = false;
    t_claim[me] = false;
    if :: t_holder == me -> t_holder = NOBODY :: else fi };
  atomic {
    s_claim[me] = false;
    if :: s_holder == me -> s_holder = NOBODY :: else fi }
}

inline lock_s(me, token, floor) {
  atomic { s_holder == NOBODY ->
    s_token = max(s_token, floor) + 1;
    token = s_token;
    s_holder = me;
    s_claim[me] = true }
}

inline lock_t(me, token, floor) {
  atomic { t_holder == NOBODY ->
    t_token = max(t_token, floor) + 1;
    token = t_token;
    t_holder = me;
    t_claim[me] = true }
}

inline register(me, phase, floor) {
  registered[me] = true;
  phase_of[me] = phase;
  floor = floor_token
}

/* Which phase a process is of changes only by a restart. */
proctype Client(byte me) {
  byte phase = 0, s = 0, t = 0, tries = 0, starts = 0, other = 0, floor = 0;
  bool legacy = false;

restart: /* in another phase; only one that is admitted gets further */
  if
  :: starts >= STARTS -> goto over
  :: else -> starts++
  fi;
  if
#ifdef BROKEN_LEGACY_IS_LEFT
  :: atomic { lo == 0 -> phase = 0; floor = 0; legacy = true };
     goto again
#endif
#ifdef BROKEN_REGISTRATION_NOT_ATOMIC
  :: lo == 0 -> phase = 0
  :: lo <= 1 && hi >= 1 -> phase = 1
  :: hi == 2 -> phase = 2
  fi;
#else
  :: atomic { lo == 0 -> phase = 0; register(me, phase, floor) }
  :: atomic { lo <= 1 && hi >= 1 -> phase = 1; register(me, phase, floor) }
  :: atomic { hi == 2 -> phase = 2; register(me, phase, floor) }
  :: atomic { changes >= CHANGES -> goto over }
  fi;
  goto again;
#endif

again:
  if
  :: tries >= TRIES -> goto over
  :: else
  fi;
  if
  :: atomic { legacy || registered[me] -> skip }
#ifdef BROKEN_REGISTRATION_NOT_ATOMIC
  :: atomic { !registered[me] -> register(me, phase, floor) }
#else
  :: atomic { !legacy && !registered[me] && lo <= phase && phase <= hi ->
       register(me, phase, floor) }
  :: atomic { !legacy && !registered[me] && !(lo <= phase && phase <= hi) -> goto restart }
#endif
  fi;
#ifdef BROKEN_NO_FLOOR_AT_OPENING
  floor = 0;
#endif

  s = 0;
  t = 0;
  tries++;
  if
  :: phase == 0 ->
     lock_s(me, s, floor);
     if
     :: atomic { s_claim[me] && (legacy || admitted(me)) -> begin(me, s, other) }
     :: true
     fi
  :: phase == 1 ->
#ifdef BROKEN_T_FIRST_IN_ONE
     if
     :: me == 1 -> lock_t(me, t, floor); lock_s(me, s, t)
     :: else -> lock_s(me, s, floor); lock_t(me, t, s)
     fi;
#else
     lock_s(me, s, floor);
#ifdef BROKEN_T_WITHOUT_MIN_TOKEN
     lock_t(me, t, 0);
#else
     lock_t(me, t, s);
#endif
#endif
     if
     :: atomic { s_claim[me] && t_claim[me] && admitted(me) ->
#ifndef BROKEN_S_NOT_RAISED
          s_token = max(s_token, t);
#endif
#ifdef BROKEN_TOKEN_OF_S_IS_SHOWN
          begin(me, s, other)
#else
          begin(me, t, other)
#endif
        }
     :: true /* a lease or the registration is over; or it crashed */
     fi
  :: phase == 2 ->
     lock_t(me, t, floor);
     if
     :: atomic { t_claim[me] && admitted(me) -> begin(me, t, other) }
     :: true
     fi
  fi;
  give_back(me);
  if
  :: goto again
  :: atomic { registered[me] = false; legacy = false };
     goto restart
  fi;

over:
  registered[me] = false
}

inline outside(result, who) {
  result = false;
  who = 1;
  do
  :: who < IDS ->
     result = result || (registered[who] && (phase_of[who] < lo || phase_of[who] > hi));
     who++
  :: else -> break
  od
}

/* Each step a compare-and-set of the window. */
proctype Coordinator() {
  byte who = 0;
  bool out = false;
  do
  :: atomic { changes < CHANGES && lo < hi -> lo = hi; changes++ }
  :: atomic { changes < CHANGES && lo < hi -> hi = lo; changes++ }
  :: atomic { changes < CHANGES && lo == hi ->
#ifndef BROKEN_OPENED_WITHOUT_SCAN
       outside(out, who);
#endif
       if
       :: !out ->
          if
          :: hi < 2 -> hi++
          :: lo > 0 -> lo--
#ifdef BROKEN_PHASE_1_SKIPPED
          :: lo == 0 -> hi = 2
#endif
          fi;
          floor_token = max(max(s_token, t_token), floor_token);
          changes++
       :: else -> changes++
       fi }
  :: changes >= CHANGES -> break
  od
}

/* Leases end, and registrations do; what rests on them ends with them. */
proctype Time() {
  byte who = 0;
  do
  :: losses < LOSSES ->
     if
     :: atomic { s_holder != NOBODY ->
          who = s_holder;
          s_claim[who] = false;
#ifdef BROKEN_HALF_LOST_IS_KEPT
          if :: !t_claim[who] -> holding[who] = false :: else fi;
#else
          holding[who] = false;
#endif
          s_holder = NOBODY;
          losses++ }
     :: atomic { t_holder != NOBODY ->
          who = t_holder;
          t_claim[who] = false;
#ifdef BROKEN_HALF_LOST_IS_KEPT
          if :: !s_claim[who] -> holding[who] = false :: else fi;
#else
          holding[who] = false;
#endif
          t_holder = NOBODY;
          losses++ }
     :: atomic { registered[1] -> registered[1] = false;
#ifndef BROKEN_HOLD_OUTLIVES_REGISTRATION
          holding[1] = false;
#endif
          losses++ }
     :: atomic { registered[2] -> registered[2] = false;
#ifndef BROKEN_HOLD_OUTLIVES_REGISTRATION
          holding[2] = false;
#endif
          losses++ }
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
    run Coordinator();
    run Time()
  }
}

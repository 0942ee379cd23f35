import { AWS } from './aws.ts'
import { BOUNDARIES } from './boundaries.ts'
import { BRIDGE } from './bridge.ts'
import { CALLERS } from './callers.ts'
import { CARRIED } from './carried.ts'
import { CHECKED } from './checked.ts'
import { FOUND } from './found.ts'
import { DECIDED } from './decided.ts'
import { CLIENTS } from './clients.ts'
import { CLUSTER } from './cluster.ts'
import { COMMANDS } from './commands.ts'
import { CREDENTIALS } from './credentials.ts'
import { GUARDS } from './guards.ts'
import { INBOUND } from './inbound.ts'
import { INSPECTED } from './inspected.ts'
import { ISSUING } from './issuing.ts'
import { KEPT_LOGINS } from './kept-logins.ts'
import { KEPT_STATE } from './kept-state.ts'
import { KUBE } from './kube.ts'
import { LIMITS } from './limits.ts'
import { LISTEN } from './listen.ts'
import { LOGIN_GUARDS } from './login-guards.ts'
import { LOGIN_RULES } from './login-rules.ts'
import { LOGINS } from './logins.ts'
import { MESSAGES } from './messages.ts'
import type { Mutation } from './mutation.ts'
import { ON_BEHALF } from './on-behalf.ts'
import { OUTBOUND } from './outbound.ts'
import { PERSONAL_LOGINS } from './personal-logins.ts'
import { PODS } from './pods.ts'
import { REVIEWS } from './reviews.ts'
import { SESSIONS_KEPT } from './sessions-kept.ts'
import { SHARED_CACHE } from './shared-cache.ts'
import { STORE } from './store.ts'
import { TENANTS } from './tenants.ts'
import { TRACES } from './traces.ts'
import { VERDICTS } from './verdicts.ts'
import { VOUCHED } from './vouched.ts'
import { SERVED } from './served.ts'
import { WIRE } from './wire.ts'
import { WITHOUT_LOGIN } from './without-login.ts'

/** Everything that `npm run mutants` plants, in the order of a request; then what is beside requests. */
export const MUTATIONS: readonly Mutation[] = [
  ...LISTEN,
  ...INBOUND,
  ...CALLERS,
  ...GUARDS,
  ...CREDENTIALS,
  ...AWS,
  ...CLIENTS,
  ...ON_BEHALF,
  ...VOUCHED,
  ...LOGINS,
  ...LOGIN_GUARDS,
  ...LOGIN_RULES,
  ...ISSUING,
  ...WITHOUT_LOGIN,
  ...OUTBOUND,
  ...SERVED,
  ...WIRE,
  ...LIMITS,
  ...CLUSTER,
  ...BOUNDARIES,
  ...COMMANDS,
  ...INSPECTED,
  ...VERDICTS,
  ...DECIDED,
  ...FOUND,
  ...CHECKED,
  ...PERSONAL_LOGINS,
  ...KEPT_LOGINS,
  ...BRIDGE,
  ...CARRIED,
  ...SESSIONS_KEPT,
  ...MESSAGES,
  ...TRACES,
  ...KUBE,
  ...PODS,
  ...REVIEWS,
  ...TENANTS,
  ...SHARED_CACHE,
  ...STORE,
  ...KEPT_STATE,
]

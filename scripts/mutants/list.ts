import { BOUNDARIES } from './boundaries.ts'
import { CALLERS } from './callers.ts'
import { CLUSTER } from './cluster.ts'
import { COMMANDS } from './commands.ts'
import { CREDENTIALS } from './credentials.ts'
import { GUARDS } from './guards.ts'
import { INBOUND } from './inbound.ts'
import { LISTEN } from './listen.ts'
import { LOGINS } from './logins.ts'
import type { Mutation } from './mutation.ts'
import { OUTBOUND } from './outbound.ts'

/** Everything that `npm run mutants` plants, in the order of a request. */
export const MUTATIONS: readonly Mutation[] = [
  ...LISTEN,
  ...INBOUND,
  ...CALLERS,
  ...GUARDS,
  ...CREDENTIALS,
  ...LOGINS,
  ...OUTBOUND,
  ...CLUSTER,
  ...BOUNDARIES,
  ...COMMANDS,
]

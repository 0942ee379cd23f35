import type { BrokenSetup } from './build.ts'
import { LISTENERS, PROVIDERS, TARGET_TLS, TYPES } from './named-files.ts'
import { DOCUMENTS, MANIFESTS, SERVERS, SHARED } from './secrets-and-documents.ts'

/** All that need no option. */
export const BROKEN_SETUPS: readonly BrokenSetup[] = [
  ...TARGET_TLS,
  ...LISTENERS,
  ...PROVIDERS,
  ...TYPES,
  ...SERVERS,
  ...SHARED,
  ...DOCUMENTS,
  ...MANIFESTS,
]

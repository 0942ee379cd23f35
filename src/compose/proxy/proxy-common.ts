import type { FixedSettings } from './reloader.ts'
import type { Store } from '../../storage/index.ts'
import type { ResolvedProxy } from '../../load/index.ts'
import type { Secret } from '../../core/index.ts'
import type { EphemeralKeys } from '../../signing/index.ts'
/** What the workers of one proxy have in common; a process alone has its own. */
export interface Common {
  /** Of the supervisor, which accepts connections and hands them round. */
  readonly url: string
  /** Of the session ids that clients see, where none is configured. */
  readonly sessionKey: Secret
  /** 48 bytes with which TLS session tickets are encrypted. */
  readonly ticketKeys: Buffer
  /** What the first configuration said of what needs a restart. */
  readonly settings: FixedSettings
  /** Where `storage: memory` is. */
  readonly memory: (scope: string) => Store
  /** Keys for authorization servers that have none configured. */
  readonly ephemeralKeys: (server: string) => EphemeralKeys
  /** Called before a configuration is put in force: after it `ephemeralKeys` has those of its servers. */
  readonly prepare: (config: ResolvedProxy) => Promise<void>
}

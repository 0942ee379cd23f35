import { createHash } from 'node:crypto'
import { chmod, mkdir, readdir, rm } from 'node:fs/promises'
import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'
import { writePrivateFile } from '../files/index.ts'

/** Size limit of a record in bytes; a larger file is not a login record. */
const MAX_BYTES = 256 * 1024
const SUFFIX = '.json'

const RECORD = z.object({
  version: z.literal(1),
  /** The authorization server's. */
  issuer: z.string(),
  resource: z.string(),
  /** The MCP server's URL. */
  endpoint: z.string(),
  client: z.object({
    client_id: z.string(),
    client_secret: z.string().optional(),
    token_endpoint_auth_method: z.string().optional(),
    redirect_uri: z.string(),
  }),
  server: z.object({
    token_endpoint: z.string(),
    revocation_endpoint: z.string().optional(),
  }),
  access_token: z.string(),
  /** Absent when the server did not say. */
  expires_at_ms: z.number().optional(),
  refresh_token: z.string().optional(),
  scope: z.string().optional(),
})

/** A stored login: its tokens, and the endpoints to refresh and revoke them. */
export type LoginRecord = z.infer<typeof RECORD>

/** The logins of one user: one file each, readable only by the user. */
export interface LoginStore {
  readonly directory: string
  /** The login for an MCP server; undefined without a readable one. */
  forEndpoint(endpoint: string): Promise<LoginRecord | undefined>
  all(): Promise<readonly LoginRecord[]>
  /** Replaces the login for the same issuer and resource atomically. */
  save(record: LoginRecord): Promise<void>
  forget(record: Pick<LoginRecord, 'issuer' | 'resource'>): Promise<void>
}

/** Opens the store in `directory`, which is created with the first login. */
export function openLoginStore(directory: string): LoginStore {
  const fileOf = ({ issuer, resource }: Pick<LoginRecord, 'issuer' | 'resource'>): string =>
    path.join(
      directory,
      createHash('sha256')
        .update(JSON.stringify([issuer, resource]))
        .digest('hex')
        .slice(0, 32) + SUFFIX,
    )
  const all = async (): Promise<readonly LoginRecord[]> => {
    const names = await readdir(directory).catch(() => [])
    return names
      .filter((name) => name.endsWith(SUFFIX))
      .map((name) => read(path.join(directory, name)))
      .filter((record) => record !== undefined)
  }
  return {
    directory,
    all,
    forEndpoint: async (endpoint) => (await all()).find((record) => record.endpoint === endpoint),
    async save(record) {
      await mkdir(directory, { recursive: true, mode: 0o700 })
      await chmod(directory, 0o700)
      await writePrivateFile(fileOf(record), `${JSON.stringify(record, null, 2)}\n`)
    },
    forget: async (record) => rm(fileOf(record), { force: true }),
  }
}

function read(file: string): LoginRecord | undefined {
  try {
    if (statSync(file).size > MAX_BYTES) return undefined
    return RECORD.parse(JSON.parse(readFileSync(file, 'utf8')))
  } catch {
    // A truncated or foreign file; a login will replace it.
    return undefined
  }
}

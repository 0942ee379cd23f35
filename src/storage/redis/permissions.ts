import type { Argument, Connection } from './connection.ts'
import { ReplyError } from './reply-errors.ts'
import { troubleOf } from '../trouble.ts'

const TTL_MS = 10_000

/**
 * Sends every needed command for keys with this prefix on a new connection. Returns the rejections as text: missing
 * ACL permissions (`+time`, `~keys`, `&channels`), and others. Throws `StoreError` if the connection is lost.
 */
export async function refusedCommands(
  connection: Connection,
  prefix: string,
  { db, waitReplicas }: { readonly db: number; readonly waitReplicas: number },
): Promise<readonly string[]> {
  const [value, set, channel] = [`${prefix}v:check`, `${prefix}c:check`, `${prefix}m:${db}:check`]
  const commands: readonly (readonly [string, ...Argument[]])[] = [
    ['ping'],
    ['role'],
    ['set', value, '', 'PX', TTL_MS],
    ['get', value],
    ['getrange', value, 0, 0],
    ['pttl', value],
    ['pexpire', value, TTL_MS],
    ['getdel', value],
    ['time'],
    ['zadd', set, 1, 'member'],
    ['pexpire', set, TTL_MS],
    ['zcard', set],
    ['zrange', set, 0, 0],
    ['zscore', set, 'member'],
    ['zrem', set, 'member'],
    ['del', value, set],
    ['eval', 'return 1', 0],
    ['evalsha', '0'.repeat(40), 0],
    ['publish', channel, ''],
    ...(waitReplicas > 0 ? [['wait', 0, 1] as const] : []),
  ]
  const missing = new Set<string>()
  const refused = new Set<string>()
  const attempt = async (name: string, work: Promise<unknown>) => {
    try {
      await work
    } catch (error) {
      if (!(error instanceof ReplyError)) throw error
      if (error.code === 'NOPERM') missing.add(PERMISSIONS[error.lacks ?? 'command'] ?? `+${name}`)
      // Unknown scripts and foreign data at these keys say nothing about permissions.
      else if (error.code !== 'NOSCRIPT' && error.code !== 'WRONGTYPE')
        refused.add(`it rejects ${name}: ${troubleOf(error).problem}`)
    }
  }
  for (const command of commands) await attempt(command[0], connection.call(command))
  await attempt('subscribe', connection.subscribe(channel))
  await attempt('unsubscribe', connection.unsubscribe(channel))
  const lacking = missing.size === 0 ? [] : [`its user lacks ${[...missing].join(' ')}`]
  return [...lacking, ...refused]
}

const PERMISSIONS: Readonly<Record<string, string | undefined>> = { key: '~extauth:*', channel: '&extauth:*' }

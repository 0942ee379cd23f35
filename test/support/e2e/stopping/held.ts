import type { ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { vi } from 'vitest'
import type { Sockets } from '../../sockets.ts'
import { extauth, type ProcessOptions, type Running } from '../process.ts'
import { configFolder } from '../run.ts'

/** So long an answer goes on after the signal: several times what ends a process that does not drain. */
export const HOLD_MS = 3_000

/** A server whose responses begin at once and end on demand. */
export async function halfServer(sockets: Sockets) {
  const begun: ServerResponse[] = []
  const url = await sockets.http((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write('{"half":')
    begun.push(response)
  })
  return {
    url,
    /** Resolves when so many answers have begun. */
    begun: (count: number) =>
      vi.waitFor(
        () => {
          if (begun.length < count) throw new Error(`${begun.length} of ${count} have begun`)
        },
        { timeout: 30_000, interval: 20 },
      ),
    finish: (): void => {
      for (const response of begun.splice(0)) response.end('1}')
    },
  }
}

/** A process of this program with a folder of files, whose path replaces `{dir}` in its arguments. */
export async function startWith(
  sockets: Sockets,
  files: Readonly<Record<string, string | Buffer>>,
  args: readonly string[],
  options: ProcessOptions = {},
): Promise<Running & { readonly directory: string }> {
  const folder = await configFolder(files)
  const running = extauth(
    args.map((arg) => arg.replace('{dir}', folder.directory)),
    options,
  )
  sockets.closing({
    async close() {
      running.process.kill('SIGKILL')
      await running.ended
      await folder.remove()
    },
  })
  return { ...running, directory: folder.directory }
}

/** Sends the signal, releases `held` after `HOLD_MS`, and returns its result and the exit code. */
export async function stopWhile<T>(running: Running, held: Promise<T>, letGo: () => void) {
  // Awaited below; a process that exits first closes its connections before that.
  held.catch(() => undefined)
  running.process.kill('SIGTERM')
  await delay(HOLD_MS)
  letGo()
  const [answer, code] = await Promise.all([held, running.ended])
  return { answer, code }
}

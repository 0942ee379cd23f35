import type { LoggedCall } from './command.ts'

/** What runs until somebody stops it. */
export interface Server {
  /** What is printed when it runs: where it listens. */
  readonly said: string
  /** Reads again what it was made from, on SIGHUP. */
  reload?(): unknown
  /** Resolves when it can't go on. */
  readonly ended?: Promise<string>
  close(): Promise<void>
}

/** Runs a server until the process is asked to stop, or the server ends; gives which of them, as the name of a signal or reason. */
export async function serve(
  { io, log }: Pick<LoggedCall, 'io' | 'log'>,
  start: () => Promise<Server>,
): Promise<string> {
  const { stop } = io
  const server = await start()
  if (server.said !== '') io.stdout(server.said)
  if (server.reload !== undefined) io.onReload(() => void server.reload?.())
  const signal = await Promise.race([stop, ...(server.ended === undefined ? [] : [server.ended])])
  log.info({ signal }, 'stopping')
  await server.close()
  log.info({}, 'stopped')
  return signal
}

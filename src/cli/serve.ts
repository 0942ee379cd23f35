import type { LoggedCall } from './command.ts'

/** A running server. */
export interface Server {
  /** Its addresses, printed at start. */
  readonly banner: string
  /** Reloads its configuration, on SIGHUP. */
  reload?(): unknown
  /** Resolves with the reason if the server stops itself. */
  readonly ended?: Promise<string>
  close(): Promise<void>
}

/** Runs a server until a stop signal, or until it stops itself. Returns the name of the signal, or the reason. */
export async function serve(
  { io, log }: Pick<LoggedCall, 'io' | 'log'>,
  start: () => Promise<Server>,
): Promise<string> {
  const { stop } = io
  const server = await start()
  if (server.banner !== '') io.stdout(server.banner)
  if (server.reload !== undefined) io.onReload(() => void server.reload?.())
  const signal = await Promise.race([stop, ...(server.ended === undefined ? [] : [server.ended])])
  log.info({ signal }, 'stopping')
  await server.close()
  log.info({}, 'stopped')
  return signal
}

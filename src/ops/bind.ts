import { chmodSync } from 'node:fs'
import type { Server } from 'node:net'
import type { ListenAddress } from '../http/index.ts'
import { clearStaleSocket } from './unix-socket.ts'

/**
 * Makes a server listen. A Unix socket that a killed process has left behind does not keep it from starting, and gets
 * `socketMode`, whatever the umask says (default: left as it is). Rejects with the system's error, and with
 * `config_error` when something else is at the socket's path.
 */
export async function bind(server: Server, address: ListenAddress, socketMode?: number): Promise<void> {
  if (address.kind === 'unix') await clearStaleSocket(address.path)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  const listening = (): void => {
    server.off('error', reject)
    resolve()
  }
  if (address.kind === 'unix') server.listen(address.path, listening)
  else if (address.host === '') server.listen(address.port, listening)
  else server.listen(address.port, address.host, listening)
  await promise
  if (address.kind === 'unix' && socketMode !== undefined) chmodSync(address.path, socketMode)
}

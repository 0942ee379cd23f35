import { Socket } from 'node:net'
import type { buildConnector } from 'undici'
import { OutboundError } from '../core/index.ts'
import { correctConnection } from './undici-gaps.ts'

/**
 * undici's connector as a promise that `signal` aborts. Connectors are written in this form and converted at the end.
 */
export type Connect = (options: buildConnector.Options, signal?: AbortSignal) => Promise<Socket>

/** Converts undici's callback form to a promise. */
export const promised =
  (connector: buildConnector.connector): Connect =>
  (options, signal) =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted()
      // undici returns the socket at once, although its types do not declare it.
      const connecting: unknown = connector(options, (...[error, socket]) => {
        signal?.removeEventListener('abort', giveUp)
        if (error === null) resolve(socket)
        else reject(error)
      })
      const giveUp = (): void => {
        if (connecting instanceof Socket) connecting.destroy(new OutboundError('closed', { cause: signal?.reason }))
      }
      signal?.addEventListener('abort', giveUp)
    })

/** Converts a promise to undici's callback form. The callback is called exactly once. */
export const asConnector = (connect: Connect): buildConnector.connector => {
  const run = async (options: buildConnector.Options, callback: buildConnector.Callback): Promise<void> => {
    let socket: Socket
    try {
      socket = await connect(options)
    } catch (error) {
      callback(error instanceof Error ? error : new OutboundError('unreachable'), null)
      return
    }
    correctConnection(socket)
    callback(null, socket)
  }
  return (options, callback) => void run(options, callback)
}

import type { Socket } from 'node:net'
import type { buildConnector } from 'undici'
import { OutboundError } from '../core/index.ts'
import { correctConnection } from './undici-gaps.ts'

/** undici's connector as a promise: connectors are written in this form and turned back at the end. */
export type Connect = (options: buildConnector.Options) => Promise<Socket>

/** undici's callback form → promise. */
export const promised =
  (connector: buildConnector.connector): Connect =>
  (options) =>
    new Promise((resolve, reject) => {
      connector(options, (...[error, socket]) => {
        if (error === null) resolve(socket)
        else reject(error)
      })
    })

/** Promise → undici's callback form. The callback is called exactly once. */
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

import type { ChildProcess, Serializable } from 'node:child_process'

/** What `node:cluster` says to a worker when it offers a connection, and what the worker answers. */
interface ClusterMessage {
  readonly cmd?: unknown
  readonly act?: unknown
  readonly seq?: unknown
  readonly ack?: unknown
}

/**
 * A connection that `child` was offered and did not take when it ended goes to another worker. `node:cluster` would wait for
 * the answer for ever: whoever connected would hear nothing and not even be disconnected. `isServed` says whether another
 * worker listens; if none does, the connection is closed.
 */
export function passOnOffered(child: ChildProcess, isServed: () => boolean): void {
  const offered = new Set<unknown>()
  const send = child.send.bind(child) as (message: Serializable, ...rest: unknown[]) => boolean
  child.send = (message: Serializable, ...rest: unknown[]) => {
    const { cmd, act, seq } = message as ClusterMessage
    if (cmd === 'NODE_CLUSTER' && act === 'newconn') offered.add(seq)
    return send(message, ...rest)
  }
  child.on('internalMessage', ({ ack }: ClusterMessage) => offered.delete(ack))
  let isDisconnected = false
  child.once('disconnect', () => (isDisconnected = true))
  // After its end and the last message that it sent.
  child.once('close', () => {
    // Node does not say so of a channel on which a connection was under way, and keeps the worker among those that listen.
    if (!isDisconnected) child.emit('disconnect')
    for (const ack of offered)
      child.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack, accepted: !isServed() }, undefined)
  })
}

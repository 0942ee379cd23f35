import { deserialize, serialize } from 'node:v8'
import type { Channel } from '../../../src/workers/peer.ts'

/** Two ends of one channel that carry what `advanced` serialization between processes carries, and can be cut. */
export function openChannels(): { readonly ends: readonly [Channel, Channel]; readonly cut: () => void } {
  const messages = [new Set<(message: unknown) => void>(), new Set<(message: unknown) => void>()] as const
  const closes = new Set<() => void>()
  let isCut = false
  const end = (theirs: Set<(message: unknown) => void>, ours: Set<(message: unknown) => void>): Channel => ({
    send(message, onSent) {
      if (isCut) return onSent(new Error('cut'))
      const bytes = serialize(message)
      setImmediate(() => {
        if (isCut) return
        for (const listener of theirs) listener(deserialize(bytes))
      })
      onSent(null)
    },
    onMessage: (listener) => void ours.add(listener),
    onClose: (listener) => void closes.add(listener),
  })
  return {
    ends: [end(messages[1], messages[0]), end(messages[0], messages[1])],
    cut() {
      isCut = true
      for (const listener of closes) listener()
    },
  }
}

import type { EventStore, JSONRPCMessage } from '@modelcontextprotocol/server'

const MAX_EVENTS = 1000

/** Keeps the last events of a session in memory, so that a client can resume a stream with `Last-Event-ID`. */
export function createEventStore(): EventStore {
  const events: { readonly id: string; readonly streamId: string; readonly message: JSONRPCMessage }[] = []
  let next = 1
  return {
    storeEvent(streamId, message) {
      const id = String(next++)
      events.push({ id, streamId, message })
      if (events.length > MAX_EVENTS) events.shift()
      return Promise.resolve(id)
    },
    getStreamIdForEventId(eventId) {
      return Promise.resolve(events.find((event) => event.id === eventId)?.streamId)
    },
    async replayEventsAfter(lastEventId, { send }) {
      const from = events.findIndex((event) => event.id === lastEventId)
      const streamId = events[from]?.streamId
      if (streamId === undefined) return ''
      for (const event of events.slice(from + 1)) {
        if (event.streamId === streamId && !isPriming(event.message)) await send(event.id, event.message)
      }
      return streamId
    },
  }
}

/** The empty first event that only gives a stream its first id (SEP-1699). */
const isPriming = (message: JSONRPCMessage) => Object.keys(message).length === 0

import { follow, remove } from './api.js'
import { merged } from './filters.js'
import { useEffect, useRef, useState } from './html.js'

/** As many as the proxy keeps, and some that are not over. */
const MOST = 600
const NOTHING = { requests: [], dropped: 0, failures: 0 }

/** The live list with pause and clear. `enabled` is false until the viewer is logged in. */
export function useLive(enabled) {
  const [data, setData] = useState(NOTHING)
  const [isPaused, setPaused] = useState(false)
  const [waiting, setWaiting] = useState(0)
  const [connection, setConnection] = useState('waiting')
  const held = useRef({ isPaused: false, data: NOTHING, changes: 0 })

  useEffect(() => {
    if (!enabled) return undefined
    const take = (next, changes) => {
      held.current.data = next
      if (held.current.isPaused) {
        held.current.changes += changes
        setWaiting(held.current.changes)
      } else setData(next)
    }
    return follow(
      '/events',
      {
        snapshot: ({ requests, dropped, failures }) =>
          take({ requests: requests.slice(-MOST), dropped, failures }, requests.length),
        batch: ({ requests, dropped, gone, failures }) =>
          take(
            { requests: merged(held.current.data.requests, requests, MOST, gone), dropped, failures },
            requests.length,
          ),
        cleared: () => {
          const open = held.current.data.requests.filter(({ isOpen }) => isOpen)
          take({ ...held.current.data, requests: open, dropped: 0 }, 0)
        },
      },
      setConnection,
    )
  }, [enabled])

  return {
    ...data,
    isPaused,
    waiting,
    connection,
    pause(next) {
      held.current.isPaused = next
      held.current.changes = 0
      setWaiting(0)
      setPaused(next)
      if (!next) setData(held.current.data)
    },
    clear() {
      setData({ ...held.current.data, requests: [] })
      void remove('/requests')
    },
  }
}

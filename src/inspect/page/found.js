import { load } from './api.js'
import { useEffect, useRef, useState } from './html.js'

/** So long is waited for more letters, and for more requests. */
const PAUSE_MS = 300

/** Ids of the requests whose bodies contain `text`, refreshed as requests arrive; undefined while unknown. */
export function useFound(text, requests) {
  const [found, setFound] = useState(undefined)
  const state = useRef({ timer: undefined, text: '' })
  useEffect(() => {
    const { current } = state
    current.text = text
    if (text === '') return setFound(undefined)
    current.timer ??= setTimeout(() => {
      current.timer = undefined
      const asked = current.text
      if (asked === '') return
      void load(`/search?text=${encodeURIComponent(asked)}`).then(
        ({ ids }) => (current.text === asked ? setFound(new Set(ids)) : undefined),
        () => undefined,
      )
    }, PAUSE_MS)
    return undefined
  }, [text, requests])
  useEffect(() => () => clearTimeout(state.current.timer), [])
  return found
}

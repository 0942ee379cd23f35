import type { Exchanges } from '../../../src/net/index.ts'

export interface Asked {
  readonly method: string
  readonly path: string
  readonly headers?: readonly string[]
}

/** An answer whose head is there; `text` is its body, when it has come. */
export interface Answer {
  readonly status: number
  readonly text: Promise<string>
}

/** Sends a request to a backend. Rejects with the handler's error. */
export const ask = (exchanges: Exchanges, { method, path, headers = [] }: Asked): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const body = Promise.withResolvers<string>()
    body.promise.catch(() => undefined)
    let text = ''
    exchanges.dispatch(
      { method, path, headers, body: null },
      {
        onRequestStart: () => undefined,
        onResponseStart: (_control, status) => {
          if (status >= 200) resolve({ status, text: body.promise })
        },
        onResponseData: (_control, data) => void (text += data.toString()),
        onResponseEnd: () => body.resolve(text),
        onResponseError: (_control, error) => {
          reject(error)
          body.reject(error)
        },
      },
    )
  })

import type { describe as describeRecord } from '../../../src/inspect/describe.ts'
import type { Summary } from '../../../src/inspect/record.ts'

/** A request as the page gets it. */
export type Shown = ReturnType<typeof describeRecord>

/** Asks the inspector at `url` for JSON, as its page does. */
export async function ask<T>(url: string, path: string, init: RequestInit = {}): Promise<T> {
  const response = await fetch(url + path, init)
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  return (await response.json()) as T
}

/** The finished requests that it keeps, oldest first. */
export async function finished(url: string): Promise<readonly Summary[]> {
  const { requests } = await ask<{ requests: Summary[] }>(url, '/api/requests')
  return requests.filter(({ isOpen }) => !isOpen)
}

/** A complete request. */
export const shown = (url: string, id: string): Promise<Shown> => ask<Shown>(url, `/api/requests/${id}`)

/** The texts of an event stream, collected until `stop`. */
export async function listen(url: string, path: string): Promise<{ text(): string; stop(): void }> {
  const controller = new AbortController()
  const response = await fetch(url + path, { signal: controller.signal })
  let text = ''
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder()
    for await (const chunk of response.body ?? []) text += decoder.decode(chunk as Uint8Array, { stream: true })
  }
  read().catch(() => undefined)
  return { text: () => text, stop: () => controller.abort() }
}

import { type KubeClient, keyOf, type KubeObject, type ResourceType, type WatchEvent } from '../../../src/kube/index.ts'

/** An API server in memory, as far as a controller sees it; its answers come when the test lets them. */
export interface FakeCluster {
  readonly client: KubeClient
  /** `verb kind[/subresource] name` of each write of the client, in order. */
  readonly writes: string[]
  /** Stored objects by kind and `namespace/name`. */
  stored(kind: string, key: string): KubeObject | undefined
  /** Stores an object as another client would, and notifies watchers. */
  put(object: KubeObject): void
  /** Deletes one as another client would. */
  drop(kind: string, key: string): void
  /** Lists of this kind wait until what it gives is called. */
  holdList(kind: string): () => void
  /** Events of all watches wait until what it gives is called. */
  holdEvents(): () => void
}

export function createFakeCluster(): FakeCluster {
  const stored = new Map<string, Map<string, KubeObject>>()
  const watchers = new Map<string, Set<(event: WatchEvent) => void>>()
  const lists = new Map<string, Promise<void>>()
  const writes: string[] = []
  let events = Promise.resolve()
  let version = 0

  const of = (kind: string): Map<string, KubeObject> => {
    const objects = stored.get(kind) ?? new Map<string, KubeObject>()
    stored.set(kind, objects)
    return objects
  }
  const store = (object: KubeObject): KubeObject => {
    const before = of(object.kind).get(keyOf(object))
    const { spec = before?.spec } = object
    const isSame = JSON.stringify(before?.spec) === JSON.stringify(spec)
    const generation = (before?.metadata.generation ?? 0) + (isSame ? 0 : 1)
    const metadata = { uid: `uid-${object.metadata.name}`, ...before?.metadata, ...object.metadata }
    const after = { ...before, ...object, metadata: { ...metadata, generation, resourceVersion: String(++version) } }
    of(object.kind).set(keyOf(object), after)
    const event: WatchEvent = { type: before === undefined ? 'ADDED' : 'MODIFIED', object: after }
    for (const tell of watchers.get(object.kind) ?? []) tell(event)
    return after
  }
  const write = (verb: string, object: KubeObject, subresource?: string): Promise<KubeObject> => {
    const what = subresource === undefined ? object.kind : `${object.kind}/${subresource}`
    writes.push(`${verb} ${what} ${object.metadata.name}`)
    return Promise.resolve(store(object))
  }
  async function* watch({ kind }: ResourceType, signal: AbortSignal): AsyncGenerator<WatchEvent> {
    const waiting: WatchEvent[] = []
    let wake = (): void => {}
    const tell = (event: WatchEvent): void => {
      waiting.push(event)
      wake()
    }
    watchers.set(kind, (watchers.get(kind) ?? new Set()).add(tell))
    signal.addEventListener('abort', () => wake())
    while (!signal.aborted) {
      const event = waiting.shift()
      if (event === undefined) await new Promise<void>((resolve) => (wake = resolve))
      else {
        await events
        yield event
      }
    }
  }
  const unused = (): Promise<never> => Promise.reject(new Error('not in this test'))
  const gate = (keep: (held: Promise<void>) => void): (() => void) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    keep(promise)
    return resolve
  }
  return {
    writes,
    stored: (kind, key) => stored.get(kind)?.get(key),
    put: (object) => void store(object),
    drop(kind, key) {
      const object = of(kind).get(key)
      if (object === undefined) return
      of(kind).delete(key)
      for (const tell of watchers.get(kind) ?? [])
        tell({
          type: 'DELETED',
          object: { ...object, metadata: { ...object.metadata, resourceVersion: String(++version) } },
        })
    },
    holdList: (kind) => gate((held) => void lists.set(kind, held)),
    holdEvents: () => gate((held) => void (events = held)),
    client: {
      fieldManager: 'test',
      async list({ kind }) {
        await lists.get(kind)
        return { items: [...of(kind).values()], resourceVersion: String(version) }
      },
      watch: (type, _selection, { signal }) => watch(type, signal),
      apply: (_type, object, options) => write('apply', object, options?.subresource),
      create: (_type, object) => write('create', object),
      merge(type, namespace, name, patch) {
        const before = of(type.kind).get(`${namespace}/${name}`)
        if (before === undefined) return unused()
        const { metadata } = patch as { metadata: object }
        return write('merge', { ...before, metadata: { ...before.metadata, ...metadata } })
      },
      get: unused,
      update: unused,
      remove: unused,
      raw: unused,
    },
  }
}

import { type AnswerFilter, type Caller, Failure, type FilterAnswer, type RequestView } from '../core/index.ts'
import { isEventStream, isUtf8Json } from '../http/index.ts'
import { jsonRpcIdOf } from '../mcp/index.ts'
import { EventFilter } from './event-filter.ts'
import { canonical, MessageFilter, type MessageRules } from './message-filter.ts'
import type { BackendMemory } from './protocol-memory.ts'
import type { Rules } from './rules.ts'
import { unclear } from './unclear.ts'

/** Characters of an answer that are held before its head goes out: what is wrong until then is answered with 502. */
const MAX_HELD = 512 * 1024
/** Bytes of an answer to a call in which a task is looked for. */
const MAX_OBSERVED = 64 * 1024

export interface AnswerFilterOptions {
  readonly route: string
  readonly caller: Caller
  readonly view: RequestView
  readonly rules: Rules
  readonly memory: BackendMemory
  /** The request names a session, whose end only a 404 tells. */
  readonly hasSession: boolean
}

/**
 * What of a backend's answer its caller may see: lists without the items that could not be used, event streams without
 * notifications about resources that could not be read. Throws `backend_error` for an answer to a list request that is not
 * clearly one JSON-RPC response to it.
 */
export function createAnswerFilter(options: AnswerFilterOptions): FilterAnswer {
  const { view } = options
  return (status, headers) => {
    const type = headers['content-type']
    if (type !== undefined && typeof type !== 'string') throw unclear('several media types')
    const isEvents = type !== undefined && isEventStream(type)
    // Some clients look for the name anywhere in the media type.
    if (!isEvents && type?.toLowerCase().includes('event-stream') === true) throw unclear('another media type')
    if (view.list === undefined && !isEvents) return view.mcp.kind === 'tool' ? observer(options) : undefined
    const { 'content-encoding': coding = 'identity' } = headers
    if (coding !== 'identity') throw unclear('a content encoding')
    if (view.list === undefined) return eventFilter(options, false)
    if (status === 404 && options.hasSession)
      throw new Failure('unknown_session', { detail: 'the backend answered 404' })
    if (status !== 200) throw unclear(`status ${status}`)
    if (isEvents) return eventFilter(options, true)
    if (!isUtf8Json(type ?? '')) throw unclear('another media type')
    return listFilter(options)
  }
}

function rulesOf({ rules, caller, route, memory }: AnswerFilterOptions): MessageRules {
  const context = { caller, route }
  return {
    keeps(list, key, item) {
      if (list === 'tools') memory.noteTool(key, item['annotations'])
      return rules.couldAllow(list, key, memory.annotationsOf(list === 'tools' ? key : ''), context)
    },
    keepsUpdate: (uri) => rules.couldAllow('resources', uri, memory.annotationsOf(''), context),
  }
}

const decoder = (): ((chunk: Buffer | undefined) => string) => {
  const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  return (chunk) => {
    try {
      return chunk === undefined ? utf8.decode() : utf8.decode(chunk, { stream: true })
    } catch {
      throw unclear('not UTF-8')
    }
  }
}

function listFilter(options: AnswerFilterOptions): AnswerFilter {
  const message = new MessageFilter(rulesOf(options))
  const text = decoder()
  let isOut = false
  const taken = (isWhole: boolean): Buffer => {
    if (!isWhole && !isOut && message.length < MAX_HELD) return EMPTY
    isOut = true
    return Buffer.from(message.take())
  }
  return {
    isExact: false,
    isHeld: true,
    push(chunk) {
      message.push(text(chunk))
      return taken(false)
    },
    end() {
      message.push(text(undefined))
      expectResponse(message.end(), options.view)
      return taken(true)
    },
  }
}

const EMPTY = Buffer.alloc(0)

function expectResponse({ kind, id }: ReturnType<MessageFilter['end']>, view: RequestView): void {
  if (kind !== 'response' || id !== canonical(view.id)) throw unclear('no response to this request')
}

function eventFilter(options: AnswerFilterOptions, isList: boolean): AnswerFilter {
  const { view, caller, memory } = options
  let responses = 0
  const events = new EventFilter(rulesOf(options), (message) => {
    if (message.kind !== 'response') return
    if (message.taskId !== undefined && view.mcp.kind === 'tool') memory.noteTask(caller, message.taskId, view.mcp)
    if (!isList) return
    expectResponse(message, view)
    if (++responses > 1) throw unclear('two responses')
  })
  const text = decoder()
  return {
    isExact: false,
    isHeld: isList,
    push(chunk) {
      events.push(text(chunk))
      return Buffer.from(events.take())
    },
    end() {
      events.push(text(undefined))
      if (isList && responses === 0) throw unclear('no response')
      return Buffer.from(events.take())
    },
  }
}

/** Looks for the task that a call has created, and changes nothing. */
function observer({ caller, view, memory }: AnswerFilterOptions): AnswerFilter {
  let chunks: Buffer[] = []
  let length = 0
  return {
    isExact: true,
    isHeld: false,
    push(chunk) {
      length += chunk.length
      if (length <= MAX_OBSERVED) chunks.push(chunk)
      else chunks = []
      return chunk
    },
    end() {
      const id = length > MAX_OBSERVED ? undefined : taskIn(joined(chunks), view)
      if (id !== undefined) memory.noteTask(caller, id, view.mcp)
      return EMPTY
    },
  }
}

const joined = (chunks: readonly Buffer[]): Buffer =>
  chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)

function taskIn(bytes: Buffer, view: RequestView): string | undefined {
  if (!bytes.includes('taskId') || canonical(jsonRpcIdOf(bytes)) !== canonical(view.id)) return undefined
  let taskId: string | undefined
  try {
    const message = new MessageFilter({ keeps: () => true, keepsUpdate: () => true })
    message.push(bytes.toString('utf8'))
    taskId = message.end().taskId
  } catch (error) {
    if (!(error instanceof Failure)) throw error
  }
  return taskId
}

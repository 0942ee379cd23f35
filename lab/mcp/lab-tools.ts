import { setTimeout as delay } from 'node:timers/promises'
import type { McpServer, ServerContext } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { text } from './samples.ts'
import { shown, shownText } from './shown-request.ts'
import type { LabState } from './state.ts'

/** Name of the tool that shows its own request; asked for as plain text, it is answered before it gets here. */
export const SHOW_REQUEST = 'show_request'

/** Name of the tool whose call the backend answers with a bare HTTP status (it is answered before it gets here). */
export const FAIL_WITH_STATUS = 'fail_with_status'

const MAX_RESULT_BYTES = 64 * 1024 * 1024
const MAX_WAIT_MS = 600_000

// Made once: servers are made for each request.
const STEPS = z.object({
  steps: z.number().int().min(1).max(1000).default(5),
  intervalMs: z.number().int().min(0).max(60_000).default(200),
})
const WAIT = z.object({
  ms: z.number().int().min(0).max(MAX_WAIT_MS).default(1000),
  label: z.string().max(200).default('wait'),
})
const STATUS = z.object({ status: z.number().int().min(400).max(599) })
const MAX_NOTES = 100
const NOTE_ID = z.string().min(1).max(100)
const NOTE = z.object({ id: NOTE_ID.default('welcome') })
const NEW_NOTE = z.object({ id: NOTE_ID, text: z.string().max(1000) })
const BYTES = z.object({
  bytes: z
    .number()
    .int()
    .min(0)
    .max(MAX_RESULT_BYTES)
    .default(1024 * 1024),
})

/** Sends a progress notification if the caller asked for them (MCP, progress: only with a progress token). */
async function progress(ctx: ServerContext, done: number, total: number, message: string): Promise<void> {
  const progressToken = ctx.mcpReq._meta?.progressToken
  if (progressToken === undefined) return
  await ctx.mcpReq.notify({
    method: 'notifications/progress',
    params: { progressToken, progress: done, total, message },
  })
}

/** Registers the tools that show what a proxy in front of this server does. */
export function registerLabTools(server: McpServer, state: LabState): void {
  server.registerTool(
    SHOW_REQUEST,
    { description: 'Returns the request that reached this server: request line, header lines and body, exactly.' },
    () => {
      const request = state.current.getStore()
      if (request === undefined) return { isError: true, ...text('There is no HTTP request here.') }
      return { ...text(shownText(request)), structuredContent: { ...shown(request) } }
    },
  )

  server.registerTool(
    'stream_progress',
    {
      description: 'Sends `steps` progress notifications, one every `intervalMs`, then its result.',
      inputSchema: STEPS,
    },
    async ({ steps, intervalMs }, ctx) => {
      for (let step = 1; step <= steps; step++) {
        await delay(intervalMs, undefined, { signal: ctx.mcpReq.signal })
        await progress(ctx, step, steps, `step ${step} of ${steps}`)
      }
      return text(`${steps} steps done`)
    },
  )

  server.registerTool(
    'wait',
    {
      description: 'Waits `ms` milliseconds; ends early, and says so in `wait_outcomes`, when the call is cancelled.',
      inputSchema: WAIT,
    },
    async ({ ms, label }, ctx) => {
      const entry: LabState['waits'][number] = { label, outcome: 'waiting' }
      state.waits.push(entry)
      if (state.waits.length > 1000) state.waits.shift()
      try {
        // The first notification opens the answer's stream, so that a client that goes away is noticed at once.
        await progress(ctx, 0, ms, 'waiting')
        await delay(ms, undefined, { signal: ctx.mcpReq.signal })
        entry.outcome = 'finished'
        return text(`waited ${ms} ms`)
      } catch (error) {
        entry.outcome = 'cancelled'
        throw error
      }
    },
  )

  server.registerTool('wait_outcomes', { description: 'How each call of `wait` ended.' }, () =>
    text(JSON.stringify(state.waits)),
  )

  server.registerTool(
    FAIL_WITH_STATUS,
    {
      description: 'The HTTP request of this call is answered with `status` and no MCP message at all.',
      inputSchema: STATUS,
    },
    ({ status }) => ({ isError: true, ...text(`status ${status} is answered before a call gets here`) }),
  )

  server.registerTool(
    'large_result',
    { description: 'Returns a text of `bytes` bytes.', inputSchema: BYTES },
    ({ bytes }) => text('0123456789abcdef'.repeat(Math.ceil(bytes / 16)).slice(0, bytes)),
  )
}

/** Tools that read, write and delete, for rules that treat them differently. */
export function registerNoteTools(server: McpServer, { notes }: LabState): void {
  const missing = (id: string) => ({ isError: true, ...text(`There is no note "${id}".`) })

  server.registerTool(
    'read_note',
    { description: 'Returns the text of a note.', inputSchema: NOTE, annotations: { readOnlyHint: true } },
    ({ id }) => {
      const note = notes.get(id)
      return note === undefined ? missing(id) : text(note)
    },
  )

  server.registerTool(
    'write_note',
    { description: 'Creates or replaces a note.', inputSchema: NEW_NOTE, annotations: { idempotentHint: true } },
    ({ id, text: note }) => {
      notes.delete(id)
      notes.set(id, note)
      const [oldest] = notes.keys()
      if (notes.size > MAX_NOTES && oldest !== undefined) notes.delete(oldest)
      return text(`note "${id}" written`)
    },
  )

  server.registerTool(
    'delete_note',
    { description: 'Deletes a note.', inputSchema: NOTE, annotations: { destructiveHint: true } },
    ({ id }) => (notes.delete(id) ? text(`note "${id}" deleted`) : missing(id)),
  )
}

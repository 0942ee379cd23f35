import {
  acceptedContent,
  CLIENT_CAPABILITIES_META_KEY,
  type ElicitInputParams,
  inputRequired,
  type InputRequests,
  inputResponse,
  isSpecType,
  type McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import { text } from './samples.ts'

/** Seals what a tool wants back in the next round (`createRequestStateCodec` of the server package). */
export interface StateCodec {
  mint(payload: { readonly step: string }): Promise<string>
}

const PERSON = z.object({ name: z.string() })
const OK = z.object({ ok: z.boolean() })
const COLOR = z.object({ color: z.string() })
const CONTEXT = z.object({ context: z.string() })
const PROMPT = z.object({ prompt: z.string() })
const MESSAGE = z.object({ message: z.string() })

const ask = (message: string, requestedSchema: ElicitInputParams['requestedSchema']) =>
  inputRequired.elicit({ message, requestedSchema })

const sample = (prompt: string, maxTokens: number) =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens })

/** The text of a sampling answer, or undefined when the round brought none for `key`. */
function sampled(ctx: ServerContext, key: string): string | undefined {
  const view = inputResponse(ctx.mcpReq.inputResponses, key)
  if (view.kind !== 'sampling') return undefined
  const blocks = [view.result.content].flat()
  return blocks.map((block) => (block.type === 'text' ? block.text : `[${block.type}]`)).join('')
}

/** Client capabilities from the envelope of this request (2026-07-28). */
function declaredCapabilities(ctx: ServerContext): Readonly<Record<string, unknown>> {
  const envelope: Readonly<Record<string, unknown>> = { ...ctx.mcpReq.envelope }
  const declared = envelope[CLIENT_CAPABILITIES_META_KEY]
  return isSpecType.ClientCapabilities(declared) ? declared : {}
}

/** Elicits `schema` and reports action and content the way the conformance suite reads them. */
function elicitAndReport(
  ctx: ServerContext,
  label: string,
  message: string,
  schema: ElicitInputParams['requestedSchema'],
) {
  const view = inputResponse(ctx.mcpReq.inputResponses, 'answer')
  if (view.kind !== 'elicit') return inputRequired({ inputRequests: { answer: ask(message, schema) } })
  return text(`${label}: action=${view.action}, content=${JSON.stringify(view.content ?? {})}`)
}

const DEFAULTS: ElicitInputParams['requestedSchema'] = {
  type: 'object',
  properties: {
    name: { type: 'string', default: 'John Doe' },
    age: { type: 'integer', default: 30 },
    score: { type: 'number', default: 95.5 },
    status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean', default: true },
  },
  required: [],
}

const titled = (what: string) =>
  ['First', 'Second', 'Third'].map((nth, index) => ({ const: `value${index + 1}`, title: `${nth} ${what}` }))

const ENUMS: ElicitInputParams['requestedSchema'] = {
  type: 'object',
  properties: {
    untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
    titledSingle: { type: 'string', oneOf: titled('Option') },
    legacyEnum: {
      type: 'string',
      enum: ['opt1', 'opt2', 'opt3'],
      enumNames: ['Option One', 'Option Two', 'Option Three'],
    },
    untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
    titledMulti: { type: 'array', items: { anyOf: titled('Choice') } },
  },
  required: [],
}

/** Tools that ask the user or the model something, written once for both eras (asked directly, or by another round). */
export function registerAskingTools(server: McpServer): void {
  server.registerTool(
    'test_sampling',
    { description: 'Asks the model of the client.', inputSchema: PROMPT },
    ({ prompt }, ctx) => {
      const answer = sampled(ctx, 'answer')
      if (answer === undefined) return inputRequired({ inputRequests: { answer: sample(prompt, 100) } })
      return text(`LLM response: ${answer}`)
    },
  )
  server.registerTool('test_missing_capability', { description: 'Needs a client that can sample.' }, (ctx) => {
    const answer = sampled(ctx, 'answer')
    // The server package refuses this with -32021 when the client has not declared sampling.
    return answer === undefined ? inputRequired({ inputRequests: { answer: sample('Hello', 10) } }) : text(answer)
  })
  server.registerTool(
    'test_elicitation',
    { description: 'Asks the user of the client.', inputSchema: MESSAGE },
    ({ message }, ctx) =>
      elicitAndReport(ctx, 'User response', message, {
        type: 'object',
        properties: {
          username: { type: 'string', description: "User's response" },
          email: { type: 'string', description: "User's email address" },
        },
        required: ['username', 'email'],
      }),
  )
  server.registerTool('test_elicitation_sep1034_defaults', { description: 'Asks with default values.' }, (ctx) =>
    elicitAndReport(ctx, 'Elicitation completed', 'Please review the values', DEFAULTS),
  )
  server.registerTool('test_elicitation_sep1330_enums', { description: 'Asks with every kind of choice.' }, (ctx) =>
    elicitAndReport(ctx, 'Elicitation completed', 'Please choose', ENUMS),
  )
  server.registerTool('test_streaming_elicitation', { description: 'Asks within a streamed answer.' }, (ctx) =>
    elicitAndReport(ctx, 'Elicitation completed', 'Please confirm', {
      type: 'object',
      properties: { ok: { type: 'boolean' } },
    }),
  )
}

/** Tools of the 2026-07-28 revision's multi-round-trip scenarios (SEP-2322). */
export function registerRoundTools(server: McpServer, codec: StateCodec): void {
  const nameRequest = () => ask('What is your name?', PERSON)

  server.registerTool('test_input_required_result_elicitation', { description: 'One elicitation.' }, (ctx) => {
    const person = acceptedContent(ctx.mcpReq.inputResponses, 'user_name', PERSON)
    if (person === undefined) return inputRequired({ inputRequests: { user_name: nameRequest() } })
    return text(`Hello, ${person.name}!`)
  })

  server.registerTool('test_input_required_result_sampling', { description: 'One sampling.' }, (ctx) => {
    const answer = sampled(ctx, 'capital_question')
    if (answer !== undefined) return text(answer)
    return inputRequired({ inputRequests: { capital_question: sample('What is the capital of France?', 100) } })
  })

  server.registerTool('test_input_required_result_list_roots', { description: 'One roots listing.' }, (ctx) => {
    const view = inputResponse(ctx.mcpReq.inputResponses, 'client_roots')
    if (view.kind !== 'roots') return inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } })
    return text(`Roots: ${view.roots.map((root) => root.uri).join(', ')}`)
  })

  for (const name of ['test_input_required_result_request_state', 'test_input_required_result_tampered_state']) {
    server.registerTool(name, { description: 'One elicitation with sealed state.' }, async (ctx) => {
      const answer = acceptedContent(ctx.mcpReq.inputResponses, 'confirm', OK)
      const state = ctx.mcpReq.requestState<{ step: string }>()
      if (answer !== undefined && state?.step === name) return text('state-ok')
      const confirm = ask('Please confirm', OK)
      return inputRequired({ inputRequests: { confirm }, requestState: await codec.mint({ step: name }) })
    })
  }

  server.registerTool(
    'test_input_required_result_multiple_inputs',
    { description: 'All three kinds at once.' },
    async (ctx) => {
      const person = acceptedContent(ctx.mcpReq.inputResponses, 'user_name', PERSON)
      const greeting = sampled(ctx, 'greeting')
      const roots = inputResponse(ctx.mcpReq.inputResponses, 'client_roots')
      const state = ctx.mcpReq.requestState<{ step: string }>()
      if (person !== undefined && greeting !== undefined && roots.kind === 'roots' && state?.step === 'multiple') {
        return text(`${greeting} ${person.name} (${roots.roots.length} roots)`)
      }
      return inputRequired({
        inputRequests: {
          user_name: nameRequest(),
          greeting: sample('Generate a greeting', 50),
          client_roots: inputRequired.listRoots(),
        },
        requestState: await codec.mint({ step: 'multiple' }),
      })
    },
  )

  server.registerTool('test_input_required_result_multi_round', { description: 'Two rounds.' }, async (ctx) => {
    const state = ctx.mcpReq.requestState<{ step: string }>()
    const color = acceptedContent(ctx.mcpReq.inputResponses, 'step2', COLOR)
    if (color !== undefined && state?.step === 'round-2') return text(`Your favorite color is ${color.color}.`)
    const person = acceptedContent(ctx.mcpReq.inputResponses, 'step1', PERSON)
    if (person !== undefined && state?.step === 'round-1') {
      const step2 = ask('Step 2: What is your favorite color?', COLOR)
      return inputRequired({ inputRequests: { step2 }, requestState: await codec.mint({ step: 'round-2' }) })
    }
    const step1 = ask('Step 1: What is your name?', PERSON)
    return inputRequired({ inputRequests: { step1 }, requestState: await codec.mint({ step: 'round-1' }) })
  })

  server.registerTool(
    'test_input_required_result_capabilities',
    { description: 'Asks only what the client can answer.' },
    (ctx) => {
      const declared = declaredCapabilities(ctx)
      const inputRequests: InputRequests = {}
      if (declared['sampling'] !== undefined) inputRequests['question'] = sample('What is the capital of France?', 100)
      if (declared['elicitation'] !== undefined) inputRequests['user_name'] = nameRequest()
      const answered = Object.keys(ctx.mcpReq.inputResponses ?? {})
      if (answered.length > 0 || Object.keys(inputRequests).length === 0)
        return text(`answered: ${answered.join(', ')}`)
      return inputRequired({ inputRequests })
    },
  )
}

/** The prompt that needs an answer first. */
export function registerAskingPrompt(server: McpServer): void {
  server.registerPrompt(
    'test_input_required_result_prompt',
    { description: 'A prompt that asks for its context.' },
    (ctx) => {
      const answer = acceptedContent(ctx.mcpReq.inputResponses, 'user_context', CONTEXT)
      if (answer === undefined) {
        const user_context = ask('What context should the prompt use?', CONTEXT)
        return inputRequired({ inputRequests: { user_context } })
      }
      return { messages: [{ role: 'user', content: { type: 'text', text: `Use this context: ${answer.context}` } }] }
    },
  )
}

import { setTimeout as delay } from 'node:timers/promises'
import { fromJsonSchema, type McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { PNG, STEP_MS, text, WAV } from './samples.ts'
import type { LabState } from './state.ts'

/** As text, because an object literal with a member `then` looks like a promise to `await`. */
const CONDITION = `{
  "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
  "then": { "required": ["phone"] },
  "else": { "required": ["email"] }
}`

/** The schema that the conformance suite compares word for word (`json-schema-2020-12`). */
const SCHEMA_2020_12 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  ...(JSON.parse(CONDITION) as object),
  additionalProperties: false,
}

const CONTACT = fromJsonSchema(SCHEMA_2020_12)
const REGION = z.object({ region: z.string().meta({ 'x-mcp-header': 'Region' }) })

const embedded = (uri: string, mimeType: string, value: string) => ({
  type: 'resource' as const,
  resource: { uri, mimeType, text: value },
})

/** Tools of the conformance suite that answer with one kind of content each. */
export function registerContentTools(server: McpServer): void {
  server.registerTool('test_simple_text', { description: 'One text block.' }, () =>
    text('This is a simple text response for testing.'),
  )
  server.registerTool('test_image_content', { description: 'One image.' }, () => ({
    content: [{ type: 'image', data: PNG, mimeType: 'image/png' }],
  }))
  server.registerTool('test_audio_content', { description: 'One sound.' }, () => ({
    content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }],
  }))
  server.registerTool('test_embedded_resource', { description: 'One embedded resource.' }, () => ({
    content: [embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')],
  }))
  server.registerTool(
    'test_multiple_content_types',
    { description: 'Text, image and resource in one answer.' },
    () => ({
      content: [
        { type: 'text', text: 'Multiple content types test:' },
        { type: 'image', data: PNG, mimeType: 'image/png' },
        embedded('test://mixed-content-resource', 'application/json', JSON.stringify({ test: 'data', value: 123 })),
      ],
    }),
  )
  server.registerTool('test_error_handling', { description: 'Always fails.' }, () => ({
    isError: true,
    ...text('This tool intentionally returns an error for testing'),
  }))
  server.registerTool(
    'json_schema_2020_12_tool',
    { description: 'Tool with JSON Schema 2020-12 features', inputSchema: CONTACT },
    (args) => text(JSON.stringify(args)),
  )
  server.registerTool(
    'test_x_mcp_header',
    {
      description: 'A parameter that clients of the 2026-07-28 revision also send as `Mcp-Param-Region`.',
      inputSchema: REGION,
    },
    ({ region }) => text(region),
  )
}

/** Tools of the conformance suite that say something before their result, or close their stream. */
export function registerStreamingTools(server: McpServer, state: LabState): void {
  const logging = async (ctx: Parameters<Parameters<typeof server.registerTool>[2]>[1]) => {
    await ctx.mcpReq.log('info', 'Tool execution started')
    await delay(STEP_MS)
    await ctx.mcpReq.log('info', 'Tool processing data')
    await delay(STEP_MS)
    await ctx.mcpReq.log('info', 'Tool execution completed')
    return text('Tool with logging executed successfully')
  }
  server.registerTool('test_tool_with_logging', { description: 'Sends three log messages.' }, logging)
  server.registerTool('test_logging_tool', { description: 'Sends log messages to those who asked for them.' }, logging)

  server.registerTool(
    'test_tool_with_progress',
    { description: 'Sends three progress notifications.' },
    async (ctx) => {
      const progressToken = ctx.mcpReq._meta?.progressToken
      for (const progress of [0, 50, 100]) {
        if (progress > 0) await delay(STEP_MS)
        if (progressToken === undefined) continue
        await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } })
      }
      return text('Tool with progress executed successfully')
    },
  )

  server.registerTool('test_reconnection', { description: 'Closes its stream before it answers.' }, async (ctx) => {
    ctx.http?.closeSSE?.()
    await delay(2 * STEP_MS)
    return text('Reconnection test completed successfully')
  })

  server.registerTool(
    'test_trigger_tool_change',
    { description: `Changes the list of tools (revision ${state.toolsRevision}).` },
    () => {
      state.toolsRevision += 1
      state.announce('tools')
      return text(`tools are at revision ${state.toolsRevision}`)
    },
  )
  server.registerTool('test_trigger_prompt_change', { description: 'Changes the list of prompts.' }, () => {
    state.promptsRevision += 1
    state.announce('prompts')
    return text(`prompts are at revision ${state.promptsRevision}`)
  })
}

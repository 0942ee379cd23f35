import { completable, type McpServer, ResourceTemplate } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { PNG } from './samples.ts'
import type { LabState } from './state.ts'

/** Resources of the conformance suite. */
export function registerResources(server: McpServer): void {
  const plain = (name: string, uri: string, value: string) =>
    server.registerResource(name, uri, { description: `The resource ${uri}.`, mimeType: 'text/plain' }, () => ({
      contents: [{ uri, mimeType: 'text/plain', text: value }],
    }))
  plain('static-text', 'test://static-text', 'This is the content of the static text resource.')
  plain('watched-resource', 'test://watched-resource', 'This resource can be subscribed to.')
  server.registerResource(
    'static-binary',
    'test://static-binary',
    { description: 'A PNG image.', mimeType: 'image/png' },
    () => ({ contents: [{ uri: 'test://static-binary', mimeType: 'image/png', blob: PNG }] }),
  )
  server.registerResource(
    'template',
    new ResourceTemplate('test://template/{id}/data', { list: undefined }),
    { description: 'Data by id.', mimeType: 'application/json' },
    (uri, { id }) => ({
      contents: [
        {
          uri: uri.href,
          mimeType: 'application/json',
          text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${String(id)}` }),
        },
      ],
    }),
  )
}

const said = (value: string) => ({ role: 'user' as const, content: { type: 'text' as const, text: value } })

const startingWith = (values: readonly string[]) => (typed: string | undefined) =>
  values.filter((value) => value.startsWith(typed ?? ''))

const TWO = z.object({
  arg1: completable(z.string().describe('First test argument'), startingWith(['paris', 'park', 'party', 'hello'])),
  arg2: completable(z.string().describe('Second test argument'), startingWith(['world', 'work'])),
})
const RESOURCE = z.object({ resourceUri: z.string() })

/** Prompts of the conformance suite. */
export function registerPrompts(server: McpServer, state: LabState): void {
  server.registerPrompt(
    'test_simple_prompt',
    { description: `A prompt without arguments (revision ${state.promptsRevision}).` },
    () => ({ messages: [said('This is a simple prompt for testing.')] }),
  )
  server.registerPrompt(
    'test_prompt_with_arguments',
    {
      description: 'A prompt with two arguments.',
      argsSchema: TWO,
    },
    ({ arg1, arg2 }) => ({ messages: [said(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)] }),
  )
  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    { description: 'A prompt that embeds a resource.', argsSchema: RESOURCE },
    ({ resourceUri: uri }) => ({
      messages: [
        {
          role: 'user',
          content: {
            type: 'resource',
            resource: { uri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' },
          },
        },
        said('Please process the embedded resource above.'),
      ],
    }),
  )
  server.registerPrompt('test_prompt_with_image', { description: 'A prompt with an image.' }, () => ({
    messages: [
      { role: 'user', content: { type: 'image', data: PNG, mimeType: 'image/png' } },
      said('Please analyze the image above.'),
    ],
  }))
}

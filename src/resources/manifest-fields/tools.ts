import { rejected, supported, type FieldTable } from './verdict.ts'

/** Support of each field of an MCPToolConfig; where a route refers to it, `toolsOverride` is rejected. */
export const TOOL_FIELDS: FieldTable = {
  toolsFilter: supported('as `authorization` with `default: deny`; prompts and resources are not restricted'),
  toolsOverride: rejected(
    'renames tools, which is not done here; expected none, and the new names in the server itself',
  ),
}

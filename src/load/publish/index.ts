export { combinedSchema } from './combined-schema.ts'
export { CRD_KINDS, type CrdKind, customResourceDefinition } from './crd.ts'
export { JSON_SCHEMA_NAMES, jsonSchema, type JsonSchemaName } from './json-schema.ts'

import { z } from 'zod'
import { ARN_PARTITIONS } from './aws-partitions.ts'

const ROLE_NAME = String.raw`[\w+=,.@\-_/]`
/** A claim path in braces, without surrounding spaces. */
export const PLACEHOLDER = String.raw`\{claims\.[^{} \t\n\r](?:[^{}]{0,254}[^{} \t\n\r])?\}`

/** Pattern of the specification, widened to the real partitions (decisions §1). */
export const ROLE_ARN = new RegExp(String.raw`^arn:(${ARN_PARTITIONS}):iam::\d{12}:role\/${ROLE_NAME}+$`)
const ROLE_ARN_TEMPLATE = new RegExp(
  String.raw`^arn:(${ARN_PARTITIONS}):iam::(\d{12}|${PLACEHOLDER}):role\/(${ROLE_NAME}|${PLACEHOLDER})+$`,
)
/** The text before a placeholder for the account. */
const BEFORE_ACCOUNT = ':iam::{'

export const roleArn = () =>
  z.string().max(2048).regex(ROLE_ARN, { error: 'expected a role ARN such as "arn:aws:iam::123456789012:role/reader"' })

export const roleArnTemplate = () =>
  z.string().max(2048).regex(ROLE_ARN_TEMPLATE, {
    error:
      'expected a role ARN with placeholders for the account or in the name, such as "arn:aws:iam::{claims.account}:role/mcp-{claims.team}"',
  })

/** Whether claims determine the account of this template's role. */
export const hasAccountPlaceholder = (template: string): boolean => template.includes(BEFORE_ACCOUNT)

/** `hasAccountPlaceholder` in CEL over `self`. */
export const ACCOUNT_PLACEHOLDER_CEL = `self.roleArnTemplate.contains('${BEFORE_ACCOUNT}')`

/** A part of a role ARN template: literal text or a claim. */
export type TemplatePart = string | { readonly claim: string }

/** The parts of a valid template. */
export const templateParts = (template: string): readonly TemplatePart[] =>
  template
    .split(new RegExp(`(${PLACEHOLDER})`))
    .filter((part) => part !== '')
    .map((part) => (part.startsWith('{') ? { claim: part.slice('{claims.'.length, -1) } : part))

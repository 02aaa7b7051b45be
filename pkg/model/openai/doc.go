// Package openai has the providers of OpenAI's interfaces, on its SDK with the
// SDK's retries off.
//
// Import law: message, effect's interfaces, model, answer and the SDK.
package openai

# frozen_string_literal: true

require "anthropic"
require "openai"
require "ruby_llm"

# Streams what a language model says, by three gems. None of them knows of Heddle: they read from a socket, and the
# fiber of this request waits.
class Assistants
  MODEL = "stand-in"

  # @param env [Hash] path `/openai`, `/anthropic` or `/ruby_llm`; the query is what is said to the model
  def call(env)
    name = env["PATH_INFO"].delete_prefix("/")
    return [404, { "content-type" => "text/plain" }, ["/openai, /anthropic or /ruby_llm\n"]] unless GEMS.include?(name)

    base = ENV.fetch("LLM_URL") { "http://127.0.0.1:#{env.fetch("SERVER_PORT")}/stand_in" }
    prompt = env["QUERY_STRING"]
    [200, { "content-type" => "text/plain" }, ->(stream) { answer(name, base, prompt, stream) }]
  end

  private

  # A client that leaves cancels the request (config/heddle.rb), and the gem's request ends with its block.
  def answer(name, base, prompt, stream)
    send(name, base, prompt) { |text| stream.write(text) unless text.to_s.empty? }
  ensure
    stream.close
  end

  def openai(base, prompt)
    client = OpenAI::Client.new(api_key: "none", base_url: "#{base}/v1", max_retries: 0)
    said = client.chat.completions.stream_raw(model: MODEL, messages: [{ role: :user, content: prompt }])
    said.each { |chunk| yield chunk.choices.first&.delta&.content }
  ensure
    said&.close
  end

  # The gem's client has at most 99 connections: one a request has no such limit.
  def anthropic(base, prompt)
    client = Anthropic::Client.new(api_key: "none", base_url: base, max_retries: 0)
    said = client.messages.stream_raw(model: MODEL, max_tokens: 100, messages: [{ role: :user, content: prompt }])
    said.each { |event| yield event.delta.text if event.type == :content_block_delta }
  ensure
    said&.close
  end

  def ruby_llm(base, prompt)
    context = RubyLLM.context do |config|
      config.openai_api_key = "none"
      config.openai_api_base = "#{base}/v1"
      config.max_retries = 0
    end
    chat = context.chat(model: MODEL, provider: :openai, protocol: :chat_completions, assume_model_exists: true)
    chat.ask(prompt) { |chunk| yield chunk.content }
  end

  GEMS = %w[openai anthropic ruby_llm].freeze
  private_constant :GEMS
end

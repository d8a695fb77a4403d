# frozen_string_literal: true

require "json"

# Stands in for OpenAI's and Anthropic's servers: repeats what it receives, a word at a time, as server-sent events.
class StandIn
  # Seconds between two words.
  PAUSE = Float(ENV.fetch("PAUSE", 0.2))

  # The first streams wait for each other: none sends a word before so many are open.
  TOGETHER = Integer(ENV.fetch("TOGETHER", 1))

  def initialize
    @gate = Thread::Queue.new
    @open = @most = @complete = @cancelled = 0
  end

  # `POST /v1/chat/completions` and `/v1/messages` as the services have them; `GET /counts` tells of the streams.
  def call(env)
    case env["PATH_INFO"]
    when "/v1/chat/completions" then stream(env) { |word| completion(word) }
    when "/v1/messages" then stream(env) { |word| message(word) }
    when "/counts" then [200, { "content-type" => "application/json" }, [JSON.generate(counts)]]
    else [404, { "content-type" => "text/plain" }, ["no such path\n"]]
    end
  end

  private

  def counts = { open: @open, most: @most, complete: @complete, cancelled: @cancelled }

  def stream(env, &event)
    words = JSON.parse(env["rack.input"].read).fetch("messages").last.fetch("content").then { |text| words_of(text) }
    [200, { "content-type" => "text/event-stream" }, ->(out) { say(words, out, &event) }]
  end

  # Some gems say what they say in parts.
  def words_of(content)
    text = content.is_a?(Array) ? content.filter_map { |part| part["text"] }.join : content
    text.split(/[+ ]/)
  end

  def say(words, out)
    @most = [@most, @open += 1].max
    @gate.close if @open >= TOGETHER
    @gate.pop # nil, once it is closed
    words.each do |word|
      out.write(yield(word))
      sleep PAUSE
    end
    out.write(yield(nil))
    @complete += 1
    complete = true
  ensure
    @open -= 1
    @cancelled += 1 unless complete
    out.close
  end

  def completion(word)
    return "data: [DONE]\n\n" unless word

    choice = { index: 0, delta: { role: "assistant", content: "#{word} " }, finish_reason: nil }
    "data: #{JSON.generate(id: "1", object: "chat.completion.chunk", created: 1, model: "stand-in",
                           choices: [choice])}\n\n"
  end

  def message(word)
    return "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n" unless word

    data = { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "#{word} " } }
    "event: content_block_delta\ndata: #{JSON.generate(data)}\n\n"
  end
end

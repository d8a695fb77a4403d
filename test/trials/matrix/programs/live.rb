# frozen_string_literal: true

require "async"
require "heddle/async"
require "live"

# Shows how often it was clicked.
class Counter < Live::View
  def handle(event)
    @data[:count] = @data[:count].to_i + event[:by]
    update!
  end

  def render(builder) = builder.text(@data[:count])
end

# A socket of one client: it binds its view, clicks, and leaves when it has its answer.
class Client
  attr_reader :got, :answer

  def initialize(number, meeting)
    @meeting = meeting
    @got = Async::Queue.new
    @messages = [["bind", "counter", { "class" => "Counter", "count" => 0 }], ["event", "counter", { "by" => number }]]
  end

  def read
    @meeting.wait if @messages.size == 1
    message = @messages.shift
    return message && Protocol::WebSocket::TextMessage.generate(message) if message

    @answer = @got.dequeue
    nil
  end

  def send_text(text) = @got.enqueue(text)
  def flush = nil
end

meeting = Meeting.new
texts = clients do |number|
  client = Client.new(number, meeting)
  Live::Page.new(Live::Resolver.allow(Counter)).run(client)
  client.answer
end
own = texts.each_with_index.all? { |text, number| text.to_s.include?(">#{number}<") }
proves("8 pages run at once, each with its own view", own)

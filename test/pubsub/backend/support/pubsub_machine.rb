# frozen_string_literal: true

require "json"
require "rbconfig"

# A process that follows a backend of pub/sub (machine.rb).
class PubSubMachine
  ROOT = File.expand_path("../../../..", __dir__)
  # Seconds that anything may take on a machine that is busy with other tests.
  PATIENCE = 60
  private_constant :ROOT, :PATIENCE

  # @return [String] the topic's position at its start
  attr_reader :position

  def initialize(url, topic, since = nil)
    @topic = topic
    input, @input = IO.pipe
    @output, output = IO.pipe
    command = [RbConfig.ruby, "-r#{ROOT}/bin/support/gem_paths", "-I#{ROOT}/lib", "#{__dir__}/machine.rb"]
    @pid = spawn(*command, url, topic, *since, in: input, out: output, err: File::NULL)
    [input, output].each(&:close)
    @lines = Thread::Queue.new
    @messages = Thread::Queue.new
    @reader = Thread.new { read_lines }
    @position = take(:ready).first
  end

  # @return [String] the position
  def publish(data, topic = @topic)
    @input.puts([topic, data].to_json)
    what, * = answer = pop(@lines)
    raise answer.inspect unless what == "published"

    answer.last
  end

  # @return [Array] what the machine answers: "published" or "refused", and more
  def try(data)
    @input.puts([@topic, data].to_json)
    pop(@lines)
  end

  # A message whose answer was lost in a crash is refused, as nobody knows whether it is stored; the next one is not.
  # @return [String] the position
  def publish_after_crash(data)
    what, * = answer = try(data)
    what == "published" ? answer.last : publish(data)
  end

  # @return [Array(String, String)] data and position of the next message
  def message = pop(@messages)

  # @return [Array<Array(String, String)>] up to the message that has this data
  def messages_until(data)
    got = []
    got << message until got.last&.first == data
    got
  end

  def stop
    @input.close
    Process.kill(:KILL, @pid)
    Process.wait(@pid)
    @reader.join
  end

  private

  def take(what)
    found, *rest = pop(@lines)
    raise "expected #{what}, but got #{[found, *rest].inspect}" unless found == what.to_s

    rest
  end

  def pop(queue) = queue.pop(timeout: PATIENCE) || raise("the machine says nothing")

  def read_lines
    @output.each_line do |line|
      what, *rest = JSON.parse(line)
      what == "message" ? @messages << rest : @lines << [what, *rest]
    end
    [@lines, @messages].each(&:close)
  end
end

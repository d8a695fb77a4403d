# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require_relative "support/head_parsers"
require_relative "chunked_rules_test"
require_relative "request_rules_test"
require_relative "response_rules_test"

# Their tests are run by their own files.
[ChunkedRulesTest, RequestRulesTest, ResponseRulesTest].each { |rules| Minitest::Runnable.runnables.delete(rules) }

# Our parsers beside Node's, on the messages of the rules and on mutations of them: what both accept, both parse alike;
# where only one accepts a message, the reason is listed. `SEED=1234` repeats a run.
class NodeDifferentialTest < Minitest::Test
  include Heddle::HTTP

  # Why Node may accept what we refuse: our reason, and what such bytes have.
  LAXER = {
    "it takes an empty line before a status line, any three digits and any reason" => [/status line is not/, //n],
    "it takes HTTP/0.9, more spaces, and empty lines at the start" => [/request line is not/, //n],
    "it takes a bare LF in a first line, of HTTP/0.9 or empty" => [/LF alone/, /\A[^\r\n]*\r?\n/n],
    "it takes a bare CR at the start" => [/CR is not/, /\A[\r\n]/n],
    "it asks for no Host where the protocol changes" => [/no Host/, /\ACONNECT|^upgrade:/in],
    "it takes HTTP/0.9 and 2.0" => [/, not HTTP|instead of HTTP/, //n],
    "it leaves the target to the application" => [/target/, //n],
    "it takes the first Host" => [/two Host/, //n],
    "it leaves Host to the application" => [/Host header is not/, //n],
    "its limits are others" => [/header lines|body is larger|extensions|chunk framing/, //n],
    "it refuses or ignores codings with the body" => [/transfer coding|list of codings|Transfer-Encoding/, //n],
    "it leaves some expectations to the application" => [/expectation/, //n],
    "it takes more digits" => [/size is malformed/, /\n\h{17,}/n]
  }.freeze

  # Why Node may refuse what we accept: its error, and what such bytes have.
  STRICTER = {
    "it knows a list of methods" => [/INVALID_(METHOD|CONSTANT)/, //n],
    "it knows no minor version beyond 1" => [/VERSION/, %r{HTTP/1\.[2-9]}n],
    "it parses the target's authority in another way" => [/URL/, //n],
    "it takes no length that is repeated or a list" => [/CONTENT_LENGTH/, /content-length/in],
    "it takes no empty elements of lists" => [/TRANSFER_ENCODING/, /,/n],
    "it takes an empty Expect for an expectation" => [/EXPECTATION/, /expect:/in],
    "it takes no folded lines" => [/HEADER_TOKEN|UNEXPECTED_SPACE|LF_EXPECTED/, /\r\n[ \t]/n],
    "it checks what is in an extension" => [/STRICT|CHUNK_SIZE|CHUNK_EXTENSION/, /\n\h+[ \t]*;/n]
  }.freeze

  # What releases before 20 accept, too.
  LAXER_BEFORE_TWENTY = Regexp.union(/LF alone|CR is not|obs-fold|colon|no name|no Host|control|not allowed|malformed/,
                                     /does not end|not a number|version/)

  ROUNDS = 600
  TOKENS = ["\r\n", "\n", "\r", " ", "\t", ":", ",", "\0", "\xFF", "0", "chunked", "close", "Host: b\r\n", "x"].map(&:b)

  def self.node
    @node ||= ENV.fetch("NODE", "node").then do |program|
      version, status = Open3.capture2e(program, "--version")
      [program, version[/\d+/].to_i] if status.success?
    rescue Errno::ENOENT
      nil
    end
  end

  def setup
    skip "Node is not installed" unless self.class.node
    @program, @version = self.class.node
    @random = Random.new(ENV.fetch("SEED", 20_261_121).to_i)
    @unexplained = []
  end

  def mutated(bytes)
    bytes = bytes.dup
    @random.rand(1..2).times do
      at = @random.rand(bytes.bytesize + 1)
      case @random.rand(3)
      when 0 then bytes.insert(at, TOKENS.sample(random: @random))
      when 1 then bytes.slice!(at, @random.rand(1..3))
      else bytes[at, 1] = TOKENS.sample(random: @random)
      end
    end
    bytes
  end

  def with_mutations(inputs) = inputs + Array.new(ROUNDS) { mutated(inputs.sample(random: @random)) }

  # What Node makes of each input.
  def node_results(inputs)
    lines = inputs.map { |input| JSON.generate(input.merge(bytes: [input[:bytes]].pack("m0"))) }
    script = File.join(__dir__, "node_parser.js")
    output, error, status = Open3.capture3(@program, script, stdin_data: lines.join("\n"))

    assert_predicate status, :success?, error
    output.lines.map { |line| JSON.parse(line) }
  end

  def binary(text) = text.encode(Encoding::ISO_8859_1).b

  def explained?(reason, bytes)
    LAXER.each_value.any? { |ours, pattern| ours.match?(reason) && pattern.match?(bytes) } ||
      (@version < 20 && LAXER_BEFORE_TWENTY.match?(reason))
  end

  def stricter?(error, bytes)
    STRICTER.each_value.any? { |code, pattern| code.match?(error.to_s) && pattern.match?(bytes) }
  end

  # Adds what is neither the same nor explained.
  def compare(bytes, ours, theirs, their_head)
    if ours.is_a?(Heddle::HTTP::Rejection)
      @unexplained << [bytes, ours.reason, theirs] if their_head && !explained?(ours.reason, bytes)
    elsif ours && !their_head
      @unexplained << [bytes, "accepted", theirs] unless stricter?(theirs["error"], bytes)
    elsif ours && block_given?
      yield
    end
  end

  def differ(bytes, ours, theirs)
    @unexplained << [bytes, ours, theirs] if ours != theirs
  end

  # => the body as far as it came, and whether it was refused
  def body_of(head, bytes)
    rest = bytes.byteslice(head.ending, bytes.bytesize)
    return rest.byteslice(0, head.content_length || 0) unless head.chunked?

    decoder = H1::ChunkedDecoder.new(Limits.new)
    @rest = rest.bytesize - decoder.decode(rest, 0, output = "".b)
    [output, decoder]
  end

  def compare_chunks(bytes, head, theirs)
    output, decoder = body_of(head, bytes)
    return if decoder.done? && theirs["error"] && @rest > 0 # about what follows

    accepted = theirs["error"].nil?
    if decoder.rejection
      reason = decoder.rejection.reason
      @unexplained << [bytes, reason, theirs] if accepted && !explained?(reason, bytes)
    elsif decoder.done? != accepted
      @unexplained << [bytes, decoder.done?, theirs] unless stricter?(theirs["error"], bytes)
    elsif accepted
      differ(bytes, output, theirs["body"].unpack1("m0"))
    end
  end

  def compare_request(bytes, theirs)
    ours = H1::HeadParser.new(Limits.new(underscore_headers: true)).parse(bytes)
    compare(bytes, ours, theirs, theirs["method"]) do
      differ(bytes, [ours.method, ours.target, ours.minor, ours.fields],
             [theirs["method"], theirs["target"], theirs["minor"], theirs["fields"].map { |one| binary(one) }])
      return unless theirs["body"]

      compare_persistence(bytes, ours, theirs)
      ours.chunked? ? compare_chunks(bytes, ours, theirs) : compare_body(bytes, ours, theirs)
    end
  end

  # Of the options of Connection it knows those that stand alone or between commas and spaces, and of several the last.
  def compare_persistence(bytes, head, theirs)
    return if bytes.match?(/^connection:.*[,\t]|^connection:.*^connection:/inm)

    differ(bytes, head.keep_alive?, theirs["keepAlive"])
  end

  def compare_body(bytes, head, theirs)
    # It has not come whole, or the error is about what follows.
    return if theirs["error"] && bytes.bytesize - head.ending != head.content_length.to_i

    differ(bytes, body_of(head, bytes), theirs["body"].unpack1("m0"))
  end

  def test_requests
    rules = RequestRulesTest.rows.map { |bytes, _| bytes.b }.select { |bytes| bytes.bytesize < 8_000 }
    inputs = with_mutations(rules).map { |bytes| { kind: "request", bytes: } }
    inputs.zip(node_results(inputs)) { |input, theirs| compare_request(input[:bytes], theirs) }
    assert_all_explained
  end

  def test_chunked_bodies
    head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".b
    bodies = ChunkedRulesTest.rows.select { |_, _, limits| limits.nil? }.map { |bytes, *| bytes.b }
    inputs = with_mutations(bodies).map { |bytes| { kind: "request", bytes: head + bytes } }
    inputs.zip(node_results(inputs)) { |input, theirs| compare_request(input[:bytes], theirs) }
    assert_all_explained
  end

  def test_responses
    rules = ResponseRulesTest.rows.to_h { |bytes, _, method| [bytes.b, method || "GET"] }
    inputs = with_mutations(rules.keys).map { |bytes| { kind: "response", bytes:, method: rules[bytes] || "GET" } }
    inputs.zip(node_results(inputs)) do |input, theirs|
      bytes = input[:bytes]
      ours = H1::ResponseParser.new(Limits.new).parse(input[:method], bytes)
      next if ours.is_a?(H1::ReceivedResponse) && ours.interim? # it waits for the next one

      compare(bytes, ours, theirs, theirs["status"]) do
        differ(bytes, [ours.status, ours.minor, ours.reason, ours.fields],
               [theirs["status"], theirs["minor"], binary(theirs["reason"]),
                theirs["fields"].map { |one| binary(one) }])
      end
    end
    assert_all_explained
  end

  private

  def assert_all_explained
    assert_empty @unexplained.first(10), "#{@unexplained.size} differences without a reason"
  end
end

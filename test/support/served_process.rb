# frozen_string_literal: true

require "net/http"
require "rbconfig"

# A server in a process of its own, started as a user starts it, on a port that the kernel chose. It
# is ready when it has printed its address.
class ServedProcess
  ROOT = File.expand_path("../..", __dir__)
  # The checkout's `heddle`, with the Ruby that runs the tests.
  HEDDLE = [RbConfig.ruby, "-I#{ROOT}/lib", "#{ROOT}/exe/heddle"].freeze
  # Those with which `heddle` starts itself again, which takes a tenth of a second.
  STACK_SIZES = { "RUBY_FIBER_VM_STACK_SIZE" => "1048576", "RUBY_FIBER_MACHINE_STACK_SIZE" => "1048576" }.freeze
  # Seconds that a start, or a stop, may take on a machine that is busy with other tests.
  PATIENCE = 60
  private_constant :ROOT, :STACK_SIZES, :PATIENCE

  # @return [String] what the server has printed so far
  attr_reader :output
  # @return [URI::HTTP] where it listens
  attr_reader :uri

  # @return [ServedProcess] one for all tests that ask for the same, stopped after the last test
  def self.shared(*arguments, **options)
    @shared ||= {}
    @shared[[arguments, options]] ||= new(*arguments, **options).tap { |served| Minitest.after_run { served.stop } }
  end

  # @param command [Array<String>]
  # @param environment [Hash] added to the process's environment
  # @param folder [String] where it is started
  # @param address [Regexp] the line that says where it listens; its group is the URL
  # @param patience [Numeric] seconds that the start may take
  def initialize(command, environment: {}, folder: ROOT, address: %r{(http://[^\s/]+:\d+)}, patience: PATIENCE)
    @output = +""
    @line = address
    @reader, writer = IO.pipe
    @address = Thread::Queue.new
    pid = spawn(STACK_SIZES.merge(environment), *command, chdir: folder, in: File::NULL, out: writer, err: writer)
    writer.close
    @process = Process.detach(pid)
    @drain = Thread.new { read_output }
    @uri = @address.pop(timeout: patience)
    abort_start unless @uri
  end

  # @return [Integer]
  def pid = @process.pid

  # @return [Boolean] whether it runs
  def alive? = @process.alive?

  # @return [URI::HTTP] of a path on it
  def at(path) = URI.join(uri, path)

  # @param patience [Numeric] seconds in which each read ends
  # @return [Net::HTTPResponse]
  def get(path, patience: PATIENCE)
    Net::HTTP.start(uri.host, uri.port, read_timeout: patience) { |http| http.request_get(at(path)) }
  end

  # Waits until it has printed +text+, for at most PATIENCE seconds.
  # @param text [Regexp, String]
  # @return [String] what it has printed
  def await_output(text)
    deadline = now + PATIENCE
    sleep 0.01 until @output.match?(text) || now > deadline
    @output
  end

  # Stops it as Ctrl-C does, and kills it if that is not enough.
  # @return [Process::Status]
  def stop
    signal("INT") if @process.alive?
    signal("KILL") unless @process.join(PATIENCE)
    @drain.join
    @reader.close
    @process.value
  end

  # Ends another server, which need not end in order. Puma 8.0.2 on Ruby 3.4 does not always end by INT: of fifteen that
  # had served one request, one hung in IO#close.
  # @return [Process::Status]
  def kill
    signal("KILL")
    stop
  end

  # Waits until it has ended by itself.
  # @return [Process::Status]
  def wait
    raise "the server does not end:\n#{output}" unless @process.join(PATIENCE)

    stop
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def read_output
    @reader.each_line do |line|
      @output << line
      address = line[@line, 1]
      @address << URI("#{address}/") if address
    end
    @address << nil
  end

  def abort_start
    stop
    raise "the server printed no address:\n#{output}"
  end

  def signal(name)
    Process.kill(name, pid)
  rescue Errno::ESRCH
    # It has ended by itself.
  end
end

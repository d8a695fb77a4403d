# frozen_string_literal: true

require_relative "pushed_profile"
require_relative "ruby_with_symbols"
require "fileutils"
require "socket"
require "zlib"

# rbspy as it reads another process: its reader is in the gem pyroscope, the only one that brings it as a package.
class Rbspy
  ROOT = File.expand_path("../../..", __dir__)
  # Seconds that a step may take on a machine that is busy.
  PATIENCE = 60

  # @return [String] what is read with
  def self.version = "rbspy of #{library[/pyroscope-[\d.]+/]}"

  # @return [String] the path of the gem's library
  def self.library
    folders = [ENV.fetch("HEDDLE_RBSPY", nil), *Gem.path].compact
    folders.flat_map { |folder| Dir["#{folder}/gems/pyroscope-*/lib/rbspy/rbspy.so"] }.first or
      abort "needs the gem pyroscope: gem install --install-dir FOLDER pyroscope, and HEDDLE_RBSPY=FOLDER"
  end

  # @return [String] the path of the compiled reader
  def self.reader
    @reader ||= begin
      program = File.join(ROOT, "tmp/test-rbspy/reader")
      FileUtils.mkdir_p(File.dirname(program))
      system("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-rdynamic", "-o", program,
             File.join(__dir__, "reader.c"), "-ldl", exception: true)
      program
    end
  end

  # Reads while the block runs.
  # @param process [Integer] a Ruby with its symbols
  # @param pauses [Integer] how often a second the process is stopped meanwhile
  # @return [Array<Array<String>>] the stacks that it saw, innermost method first; none of a process that only waits
  def self.read(process, pauses: 0, &) = new(process, pauses).read(&)

  def initialize(process, pauses)
    @process = process
    @pauses = pauses
    @profiles = Thread::Queue.new
  end

  def read
    server = TCPServer.new("127.0.0.1", 0)
    collector = Thread.new { collect(server) }
    command = [Rbspy.reader, Rbspy.library, @process.to_s, server.addr[1].to_s, @pauses.to_s]
    IO.popen(command, "r+", err: File::NULL) do |reader|
      raise "rbspy does not read" unless reader.gets == "reading\n"

      yield
      reader.puts
      raise "the process was never stopped" if reader.gets[/\d+/].to_i.zero? && @pauses.positive?

      seen
    end
  ensure
    collector&.kill
    server&.close
  end

  private

  # A profile is pushed every ten seconds, and at the end, even if it is empty.
  def seen
    pushed = [@profiles.pop(timeout: PATIENCE) || raise("rbspy pushes nothing")]
    while (next_one = @profiles.pop(timeout: 0.5))
      pushed << next_one
    end
    pushed.flatten(1)
  end

  def collect(server)
    loop do
      client = server.accept
      head = client.gets("\r\n\r\n")
      body = client.read(head[/^content-length: *(\d+)/i, 1].to_i)
      body = Zlib.gunzip(body) if head.match?(/^content-encoding: *gzip/i)
      client.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
      client.close
      @profiles << PushedProfile.stacks(body)
    end
  end
end

# frozen_string_literal: true

require "json"

module Heddle
  class Server
    # Keeps what requests did in the last seconds, and writes it to a file when one of them was slow: who waited for
    # what, and who held it up. The extension has the stretches of time, in a ring of fixed size
    # (ext/heddle/scheduler/recorder.h); this class has the names of the requests, without their queries.
    class Recorder
      Autoloads.add(self, "heddle/server/recorder")

      # Requests whose names are kept, the least time between two files in seconds, and the number of files.
      NAMES = 4_096
      PAUSE = 10
      FILES = 5
      # Below this folder no line is a place of the application.
      OWN = ::File.expand_path("../..", __dir__)
      private_constant :NAMES, :PAUSE, :FILES, :OWN

      # @param limit [Numeric] seconds; a request that takes longer is slow
      # @param log [#event]
      # @param folder [String] of the files
      def initialize(limit, log, folder: TemporaryFolder.find || ".")
        @limit = limit
        @log = log
        @folder = folder
        @names = {}
        @written = nil
        @files = 0
        Account.record(OWN)
      end

      # A request begins. In its fiber.
      # @param exchange [HTTP::Exchange]
      # @return [void]
      def begin(exchange)
        number = Account.number or return
        @names.delete(number)
        @names.shift if @names.size >= NAMES
        @names[number] = "#{exchange.method} #{exchange.target[/\A[^?]*/]}".scrub.byteslice(0, 200).scrub
      end

      # It has ended.
      # @param exchange [HTTP::Exchange]
      # @return [void]
      def end(exchange)
        age = exchange.age
        return if age < @limit || (@written && MonotonicClock.now - @written < PAUSE)

        @written = MonotonicClock.now
        request = @names[Account.number] # first: from here on the request's last stretch is recorded, too
        trace = Trace.new(Account.recorded, @names.dup, Stalls.recent)
        Thread.new { write(trace, request, age) } # to make the JSON takes long
      end

      private

      # The oldest file of this process is overwritten.
      def write(trace, request, seconds)
        path = ::File.join(@folder, "heddle-trace-#{Process.pid}-#{@files % FILES}.json")
        @files += 1
        ::File.write("#{path}.new", JSON.generate(trace.to_h), perm: 0o600)
        ::File.rename("#{path}.new", path)
        @log.event(:trace_written, request:, duration: seconds, file: path)
      rescue SystemCallError => e
        @log.event(:trace_not_written, file: path, error: "#{e.message} (#{e.class})")
      end
    end
  end
end

# frozen_string_literal: true

require "pg"
require "tempfile"

module Bench
  module Databases
    # What a database meets whose table is larger than the memory, on a busy disk. It has few buffers of its own, one
    # process gives the kernel's pages of the table back all the time, and another writes to the same disk.
    class DiskLoad
      # PostgreSQL's own memory; it reads the rest from files.
      SETTINGS = { "shared_buffers" => "4MB" }.freeze
      # Bytes of a row: so that a scan that computes for 50 ms reads some ten thousand pages.
      WIDTH = 1_000
      BLOCK = 65_536 # bytes
      BLOCKS = 1_024
      # Of the table's bytes, the part that a scan must read from the disk.
      COLD = 0.5

      # @param server [PrivatePostgresql]
      # @raise [Child::Failed] where the scans read from memory all the same
      def self.during(server)
        Tempfile.create("bench-disk", server.folder) do |file|
          load = new(server, file.path)
          load.check
          yield
        ensure
          load&.stop
        end
      end

      # Gives back the pages of the files that the arguments name.
      FORGET = <<~RUBY
        files = ARGV.map { |path| File.open(path) }
        files.each(&:fdatasync)
        $stdout.syswrite("ready")
        loop { files.each { |file| file.advise(:dontneed) } and sleep(0.01) }
      RUBY
      # Random writes, each of which waits for the disk.
      WRITE = <<~RUBY
        path, size, blocks = ARGV[0], Integer(ARGV[1]), Integer(ARGV[2])
        data = Random.bytes(size)
        File.open(path, "r+b") { |file| loop { file.pwrite(data, rand(blocks) * size); file.fdatasync } }
      RUBY
      private_constant :FORGET, :WRITE

      def initialize(server, written)
        @connection = server.connect
        @connection.exec("CHECKPOINT")
        first = @connection.exec("SELECT pg_relation_filepath('#{Queries::SCANNED}')").getvalue(0, 0)
        first = File.join(server.folder, "data", first)
        @pids = [await(FORGET, *Dir["#{first}{,.[0-9]*}"]), run(WRITE, written, BLOCK.to_s, BLOCKS.to_s)]
      end

      def check
        size = Integer(@connection.exec("SELECT pg_relation_size('#{Queries::SCANNED}')").getvalue(0, 0))
        before = bytes_read
        2.times { @connection.exec(Queries::LONG) }
        read = (bytes_read - before) / 2
        return if read > size * COLD

        raise Child::Failed, "a scan of #{size} bytes reads #{read} from the disk: the table stays in memory here"
      rescue SystemCallError => e
        raise Child::Failed, "can't see what the database reads from the disk: #{e.message}"
      end

      def stop
        @pids.each do |pid|
          Process.kill(:KILL, pid)
          Process.wait(pid)
        end
        @connection.close
      end

      private

      def run(program, *arguments, **) = Process.spawn(RbConfig.ruby, "-e", program, *arguments, **)

      # Until it says that it is ready.
      def await(program, *)
        reader, writer = IO.pipe
        pid = run(program, *, out: writer)
        writer.close
        reader.readpartial(10)
        pid
      ensure
        reader.close
      end

      # Of the connection's process, from the disk and not from the kernel's memory.
      def bytes_read = Integer(File.read("/proc/#{@connection.backend_pid}/io")[/^read_bytes: (\d+)/, 1])
    end
  end
end

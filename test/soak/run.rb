# frozen_string_literal: true

require "pg"
require "tmpdir"
require "support/private_postgresql"
require "support/served_process"
require_relative "clients"
require_relative "samples"

module SoakTest
  # A Rails application under steady load, while its workers are killed, its code is reloaded and its database
  # restarts.
  class Run
    # The last worker is the one that is killed; the memory of the others can be followed.
    WORKERS = 3
    # Parts of the time. In the first and the last one the code is reloaded, which replaces all workers; the memory
    # of workers that live longer is compared after the warm-up.
    STEADY = 0.2
    WARM = 0.35
    CLOSING = 0.88
    # How many times the clients' pace is faster between STEADY and WARM. A worker reaches the size that it keeps after
    # a number of requests, not after a time.
    WARMING = 4
    # Seconds after a kill, or the start of a database, in which a request may fail for that reason.
    GRACE = 10
    # Seconds for the start and the end of the server, also on a machine that is busy with other work.
    TIMEOUT = 300
    # Supervisor, dispatcher and worker.
    SOLID_QUEUE_PROCESSES = 3
    # How the server says that a reload has ended.
    RELOADED = /reloaded: \d+ workers? |reload failed: /
    private_constant :TIMEOUT, :SOLID_QUEUE_PROCESSES, :RELOADED

    # What happened to the server, and when.
    Disturbance = Data.define(:time, :kind, :pid)
    # What a run has shown; Report judges it.
    Result = Data.define(:seconds, :samples, :clients, :disturbances, :unseen, :missing, :cpu_seconds, :output)

    # @param seconds [Numeric]
    # @param environment [Hash{String => String}] of the server
    # @param pace [Float] factor of the clients' pauses
    def initialize(seconds, environment: {}, pace: 1.0, output: $stdout)
      @seconds = seconds
      @environment = environment
      @pace = pace
      @output = output
      @disturbances = []
      @reloads = 0
      @reloading = -Float::INFINITY
    end

    # @return [Result]
    def run
      Dir.mktmpdir("heddle-soak") do |folder|
        prepare(folder)
        @began = now
        disturb
        finish
      ensure
        @server&.stop
        @upstream&.close
        @database&.stop
      end
    end

    private

    def prepare(folder)
      @database = PrivatePostgresql.new
      create_tables
      @upstream = start_upstream
      control = File.join(folder, "control.sock")
      parts = File.join(folder, "parts").tap { |path| Dir.mkdir(path) }
      @server = ServedProcess.new(
        [*ServedProcess::HEDDLE, "serve", "-b", "127.0.0.1:0", "--control", "unix:#{control}", "--no-access-log"],
        folder: File.join(__dir__, "app"),
        environment: { "RAILS_ENV" => "production", "DATABASE_URL" => @database.url, "SOAK_PARTS" => parts,
                       "SOAK_UPSTREAM" => "http://127.0.0.1:#{@upstream.local_address.ip_port}", **@environment },
        patience: TIMEOUT
      )
      @samples = Samples.new(@server.pid, control, parts)
      wait_until("the workers do not start") { @samples.workers.size == WORKERS }
      # Without a database while it starts, it ends, and the server with it.
      wait_until("Solid Queue does not start") { processes_of_solid_queue == SOLID_QUEUE_PROCESSES }
    end

    def processes_of_solid_queue
      pg = @database.connect
      pg.exec("SELECT count(*) FROM solid_queue_processes").getvalue(0, 0).to_i
    ensure
      pg&.close
    end

    def create_tables
      pg = @database.connect
      pg.exec("CREATE TABLE notes (id bigserial PRIMARY KEY, kind varchar NOT NULL, token varchar NOT NULL)")
      pg.close
      schema = File.join(Gem::Specification.find_by_name("solid_queue").gem_dir,
                         "lib/generators/solid_queue/install/templates/db/queue_schema.rb")
      program = 'require "active_record"; ActiveRecord::Base.establish_connection(ARGV[0]); ' \
                "ActiveRecord::Schema.verbose = false; load ARGV[1]"
      system(RbConfig.ruby, "-e", program, @database.url, schema, exception: true)
    end

    # The other service that the application asks.
    def start_upstream
      TCPServer.new("127.0.0.1", 0).tap do |server|
        Thread.new do
          loop { Thread.new(server.accept) { |socket| answer(socket) } }
        rescue IOError
          nil # it was closed
        end
      end
    end

    def answer(socket)
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nupstream") while socket.gets("\r\n\r\n")
      socket.close
    rescue SystemCallError
      nil
    end

    # Each step happens in its part of the time, as often as twenty times in all of it. A reload is not disturbed: Solid
    # Queue starts anew after it, and ends, with the server, when it finds no database.
    def disturb
      @clients = Clients.new(@server.uri.port, pace: @pace, clock: -> { time })
      step = @seconds / 20.0
      due = { sample: 0, restart_database: step / 2, kill_worker: step, reload: step * 0.75 }
      pauses = { sample: [15, @seconds / 100.0].min, restart_database: step, kill_worker: step, reload: step }
      while time < @seconds
        raise "the server has ended:\n#{@server.output}" unless @server.alive?

        @clients.pace = warming? ? @pace / WARMING : @pace
        due.each do |kind, at|
          next if time < at || (kind != :sample && reloading?)

          due[kind] = time + pauses[kind]
          kind == :sample ? @samples.take(time) : happen(kind)
        end
        sleep 0.2
      end
    end

    def warming? = time.between?(STEADY * @seconds, WARM * @seconds)

    # Whether a reload is under way, or has been until half a step ago. Solid Queue starts anew after it.
    def reloading?
      under_way = @server.output.scan(RELOADED).size < @reloads
      @reloading = time if under_way || (settling? && processes_of_solid_queue != SOLID_QUEUE_PROCESSES)
      settling?
    end

    def settling? = time < @reloading + (@seconds / 40.0)

    def happen(kind)
      case kind
      when :reload
        return if time.between?(STEADY * @seconds, CLOSING * @seconds)

        @reloads += 1
        note(:reload, @server.pid)
        Process.kill(:HUP, @server.pid)
      when :kill_worker
        pid = @samples.workers[WORKERS - 1] or return
        note(:kill, pid)
        Process.kill(:KILL, pid)
      when :restart_database
        note(:database_stops, nil)
        @database.restart
        note(:database_starts, nil)
      end
    rescue Errno::ESRCH
      nil # a reload has replaced it
    end

    def note(kind, pid)
      @disturbances << Disturbance.new(time:, kind:, pid:)
      @output.puts "#{time.round(1)} s  #{kind} #{pid}".rstrip
      @output.flush
    end

    def finish
      seconds = time
      unseen = nil
      @clients.stop { unseen = @clients.unseen }
      wait_until_jobs_are_done
      Result.new(seconds:, samples: @samples.all, clients: @clients, disturbances: @disturbances, unseen:,
                 missing: missing, cpu_seconds: @samples.cpu_seconds, output: @server.output)
    end

    # => numbers of confirmed notes and jobs that the database does not have
    def missing
      pg = @database.connect
      found = pg.exec("SELECT kind, token FROM notes").values.group_by(&:first)
      { notes: @clients.notes, jobs: @clients.jobs }.to_h do |name, tokens|
        [name, (tokens - found.fetch(name.to_s.chomp("s"), []).map(&:last)).size]
      end
    ensure
      pg&.close
    end

    def wait_until_jobs_are_done
      deadline = now + TIMEOUT
      sleep 0.5 until missing[:jobs].zero? || now > deadline
    end

    def wait_until(problem)
      deadline = now + TIMEOUT
      until yield
        raise "#{problem}:\n#{@server.output}" if now > deadline

        sleep 0.1
      end
    end

    def time = now - @began

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end

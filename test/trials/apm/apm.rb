# frozen_string_literal: true

require "fileutils"
require "net/http"
require "rbconfig"
require "tmpdir"
$LOAD_PATH.unshift(File.expand_path("../..", __dir__)) # of the tests' support
require_relative "../../../bin/support/gem_paths" # msgpack, in which an agent reports
require "support/served_process"
require_relative "collector"

module Trials
  # Tries the agents of vendors behind two workers: after their fork, after a refork and after a reload twenty requests
  # at once are sent, and a collector on loopback counts what the agents report of them.
  class Apm
    ROOT = File.expand_path("../../..", __dir__)
    PAGE = File.join(ROOT, "docs/gems.md")
    MARKS = ["<!-- apm: written by `test/trials/apm/run --write` -->\n", "<!-- end of apm -->"].freeze
    HEAD = "| agent | requests after fork, refork, reload | queue time of 0.25 s | processes that report | set |\n" \
           "| - | - | - | - | - |\n"
    REQUESTS = 20
    QUEUED = 0.25
    PHASES = %w[fork refork reload].freeze
    # More than a worker serves in a phase: an agent may not have sent its last reports when a worker ends.
    REFORK_AFTER = 30
    # Seconds for the reports of a phase.
    TIMEOUT = 30
    ABI = RbConfig::CONFIG["ruby_version"]
    HOME = ENV.fetch("APM_GEMS", File.join(ROOT, "tmp/trials/matrix", ABI))
    private_constant :HOME

    # @!attribute gems [Array<String>] the first is the vendor's
    # @!attribute queue [Array(Regexp, Numeric), nil] where it reports the queue time, and its units of a second
    # @!attribute set [String] what an application has to set
    # @!attribute not_run [String, nil] why it can't be tried
    Vendor = Data.define(:name, :gems, :environment, :queue, :set, :not_run) do
      def initialize(name:, gems:, environment: ->(_) { {} }, queue: nil, set: "nothing", not_run: nil) = super
    end

    NEW_RELIC = lambda do |collector|
      { "NEW_RELIC_LICENSE_KEY" => "0123456789" * 4, "NEW_RELIC_APP_NAME" => "probe", "NEW_RELIC_HOST" => "127.0.0.1",
        "NEW_RELIC_PORT" => collector.ports[:tls].to_s, "NEW_RELIC_CA_BUNDLE_PATH" => collector.certificate,
        "NEW_RELIC_MONITOR_MODE" => "true", "NEW_RELIC_LOG" => "stdout", "NEW_RELIC_LOG_LEVEL" => "warn",
        "NEW_RELIC_ATTRIBUTES_INCLUDE" => "*" }
    end
    AGENT = "its extension fetches an agent when it is installed"

    VENDORS = [
      Vendor.new(name: "new_relic", gems: %w[newrelic_rpm], environment: NEW_RELIC,
                 queue: [/"queueDuration":([\d.]+)/, 1]),
      Vendor.new(name: "datadog", gems: %w[datadog msgpack],
                 queue: [/"queue_time":(\d+)/, 1e9],
                 set: "`request_queuing: true` for the queue time"),
      Vendor.new(name: "sentry", gems: %w[sentry-ruby], queue: [/"http.server.request.time_in_queue":([\d.]+)/, 1000]),
      Vendor.new(name: "appsignal", gems: %w[appsignal], not_run: AGENT),
      Vendor.new(name: "skylight", gems: %w[skylight], not_run: AGENT),
      Vendor.new(name: "scout", gems: %w[scout_apm], not_run: "it reports once a minute, to an account"),
      Vendor.new(name: "honeybadger", gems: %w[honeybadger]),
      Vendor.new(name: "bugsnag", gems: %w[bugsnag]),
      Vendor.new(name: "rollbar", gems: %w[rollbar]),
      Vendor.new(name: "airbrake", gems: %w[airbrake]),
      Vendor.new(name: "elastic", gems: %w[elastic-apm], set: "`gem \"json\", \"< 3\"`, as under any server",
                 environment: ->(_) { { "RUBYOPT" => "-r#{__dir__}/json_2.rb" } }),
      Vendor.new(name: "opentelemetry", gems: %w[opentelemetry-sdk opentelemetry-instrumentation-rack],
                 set: "a BatchSpanProcessor, as the exporters use it"),
      Vendor.new(name: "yabeda", gems: %w[yabeda-prometheus yabeda-rack-queue],
                 set: "`DirectFileStore`, as for any server with several processes"),
      Vendor.new(name: "prometheus_exporter", gems: %w[prometheus_exporter webrick],
                 queue: [/"queue_time":([\d.]+)/, 1]),
      Vendor.new(name: "judoscale", gems: %w[judoscale-rack], queue: [/,(\d+),"qt"/, 1000])
    ].freeze

    # @!attribute counted [Array<Integer>] requests of each phase that were reported once, and apart from others
    # @!attribute queue [Float, nil] median of the queue times, in seconds
    # @!attribute strangers [Array<String>] processes that reported and are no workers
    Result = Data.define(:version, :counted, :queue, :strangers, :output) do
      def ok?(vendor) = counted.all?(REQUESTS) && strangers.empty? && (vendor.queue.nil? || queue&.between?(0.24, 2))
    end

    # @param names [Array<String>] of vendors; empty: all
    def initialize(names = [])
      @vendors = VENDORS.select { |vendor| names.empty? || names.include?(vendor.name) }
      @environment = { "GEM_HOME" => HOME, "GEM_PATH" => "#{HOME}:#{ROOT}/vendor/bundle/ruby/#{ABI}", "RUBYOPT" => nil,
                       "RACK_ENV" => "production" }
    end

    # @yieldparam vendor [Vendor]
    # @yieldparam result [Result, nil] nil: it was not run
    # @return [void]
    def run = @vendors.each { |vendor| yield vendor, (try(vendor) unless vendor.not_run) }

    # Puts the row of a vendor into the page.
    # @param result [Result, nil]
    # @return [void]
    def self.write(vendor, result)
      File.open(PAGE, "r+") do |page|
        page.flock(File::LOCK_EX) # another run may write, too
        head, rest = page.read.split(MARKS.first, 2)
        before, after = rest.split(MARKS.last, 2)
        rows = before.lines.drop(2).to_h { |line| [line[/\A\| ([^| ]+)/, 1], line] }
        rows[vendor.gems.first] = line_of(vendor, result)
        table = rows.values_at(*VENDORS.map { |one| one.gems.first })
        page.rewind
        page.truncate(0)
        page.write([head, MARKS.first, HEAD, *table, MARKS.last, after].join)
      end
    end

    def self.line_of(vendor, result)
      return "| #{vendor.gems.first} | not run, because #{vendor.not_run} | | | |\n" unless result

      counted = result.counted.map { |count| "#{count} of #{REQUESTS}" }.join(", ")
      queue = result.queue ? "#{result.queue.round(2)} s" : "not reported"
      senders = ["workers", *result.strangers].join(", ")
      "| #{vendor.gems.first} #{result.version} | #{counted} | #{queue} | #{senders} | #{vendor.set} |\n"
    end
    private_class_method :line_of

    private

    def try(vendor)
      version = install(vendor.gems)
      Dir.mktmpdir do |folder|
        @collector = Collector.new(folder)
        @served = serve(vendor, folder)
        @collector.master = @served.pid
        counted = PHASES.map { |phase| count(vendor, phase) }
        senders = @collector.notes.filter_map(&:sender).uniq
        Result.new(version:, counted:, queue: queue_time(vendor), strangers: senders.grep_v(/\Aheddle: worker \d/),
                   output: @served.output)
      ensure
        @served&.stop
      end
    end

    def serve(vendor, folder)
      own = { "APM" => vendor.name, "APM_FOLDER" => folder, "COLLECTOR_PORT" => @collector.ports[:plain].to_s }
      environment = { **@environment, **vendor.environment.call(@collector), **own }
      flags = %w[-p 0 -b 127.0.0.1 -w 2 --reserve-workers 0 --no-access-log --control off]
      ServedProcess.new([*ServedProcess::HEDDLE, "serve", File.join(__dir__, "config.ru"), *flags,
                         "--refork-after", REFORK_AFTER.to_s], environment:)
    end

    # @return [Integer] requests of the phase that were counted right
    def count(vendor, phase)
      begin_phase(phase)
      before = totals(vendor)
      by_name = !vendor.name.match?(/judoscale|exporter/)
      Array.new(REQUESTS) { |number| Thread.new { ask("/?#{phase}-#{number}") } }.each(&:join)
      right = 0
      eventually { (right = by_name ? marked(vendor, phase) : totals(vendor) - before) >= REQUESTS }
      right
    end

    def begin_phase(phase)
      case phase
      when "refork"
        100.times { @served.get("/?other") }
        wait_for("reforked: ")
      when "reload"
        Process.kill(:HUP, @served.pid)
        wait_for("reloaded: ")
      end
    end

    def ask(path)
      request = Net::HTTP::Get.new(path, "X-Request-Start" => "t=#{Time.now.to_f - QUEUED}")
      Net::HTTP.start(@served.uri.host, @served.uri.port) { |http| http.request(request) }
    end

    # Agents that give requests no names count them, by their queue times.
    def totals(vendor)
      pattern = vendor.name == "judoscale" ? /"qt"/ : /"queue_time":\d/
      @collector.notes.sum { |note| note.body.scan(pattern).size }
    end

    # A request that is reported once, in a record with no mark of another.
    def marked(vendor, phase)
      marks = records(vendor).map { |record| record.scan(/mark(?:<|\\u003c)([\w-]+)/).flatten.uniq }.reject(&:empty?)
      single = marks.select { |found| found.size == 1 }.flatten.tally
      mixed = marks.reject { |found| found.size == 1 }.flatten
      (0...REQUESTS).count { |number| single["#{phase}-#{number}"] == 1 && !mixed.include?("#{phase}-#{number}") }
    end

    def records(vendor)
      return @served.get("/metrics").body.scan(/^probe_requests.* 1(?:\.0)?$/) if vendor.name == "yabeda"

      @collector.notes.flat_map do |note|
        next note.body.lines unless vendor.name == "new_relic"

        # The same transaction is in other reports, too: as spans, as a sample.
        note.path.include?("analytic_event_data") ? JSON.parse(note.body)[2].map { |event| JSON.generate(event) } : []
      end
    end

    def queue_time(vendor)
      return yabeda_queue_time if vendor.name == "yabeda"
      return unless vendor.queue

      pattern, unit = vendor.queue
      times = @collector.notes.flat_map { |note| note.body.scan(pattern).flatten.map { |text| text.to_f / unit } }.sort
      times[times.size / 2]
    end

    def yabeda_queue_time
      text = @served.get("/metrics").body
      sum, count = %w[sum count].map { |part| text.scan(/^rack_queue\w*_#{part}\S* (\S+)/).flatten.sum(&:to_f) }
      sum / count if count.positive?
    end

    def wait_for(text)
      eventually { @served.output.include?(text) } or raise "#{text.inspect} is not said:\n#{@served.output}"
    end

    def eventually
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + TIMEOUT
      until (done = yield) || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
        sleep 0.05
      end
      done
    end

    # @return [String] the version of the first
    def install(gems)
      versions = gems.map do |name|
        find = ["-e", "print Gem::Specification.find_all_by_name(ARGV[0]).map(&:version).max", name]
        found = IO.popen([@environment, RbConfig.ruby, *find], &:read)
        next found unless found.empty?

        system(@environment, RbConfig.ruby, "-S", "gem", "install", "--no-document", "--conservative", name, out: File::NULL)
        IO.popen([@environment, RbConfig.ruby, *find], &:read)
      end
      versions.first
    end
  end
end

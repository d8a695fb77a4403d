# frozen_string_literal: true

require "fileutils"
require "json"
require "open3"
require "time"
require_relative "changed_code"
require_relative "sanitized_content"
require_relative "test_command"

# Runs the stages of .ci/nightly and writes the result of each into .ci/nightly.json, which a person commits. A result
# holds until code that the stage covers changes (ChangedCode), so that a run may be continued (`resume`) on another
# day.
class Nightly
  # A program that runs tests.
  #
  # - covers: what the beginnings of the paths are on whose code its result depends
  # - sanitizer, tests: what has run under a sanitizer when it passes. The file notes their digests (SanitizedContent),
  #   by which it holds.
  # - concerned: of a command that takes test files, gives those that depend on changed files; nil means all
  # - beside: whether it runs beside the others, because it waits, or is of a low priority
  Stage = Data.define(:name, :command, :environment, :covers, :sanitizer, :tests, :concerned, :beside) do
    def initialize(environment: {}, covers: [""], sanitizer: nil, tests: [], concerned: nil, beside: false, **) = super
  end

  # What is left to do of a stage: everything, nothing, or these test files.
  EVERYTHING = :everything
  NOTHING = [].freeze

  # Lines of a failed stage's log that are printed.
  LINES = 60
  NOT_RUN = /^not run: (.+)$/
  FAILED_FILE = %r{^failed: [^#\n]*?(test/\S+_test\.rb)}
  private_constant :EVERYTHING, :NOTHING, :LINES, :NOT_RUN, :FAILED_FILE

  # @param stages [Array<Stage>]
  # @param root [String] the checkout
  def initialize(stages, root:, out: $stdout)
    @stages = stages
    @root = root
    @out = out
    @path = File.join(root, SanitizedContent::RESULTS)
    @logs = File.join(root, "tmp/nightly")
    @code = ChangedCode.new(root)
    @sanitized = SanitizedContent.new(root)
    @groups = []
    @lock = Mutex.new
  end

  # @param names [Array<String>] stages whose name begins with one of these; all without any
  # @param resume [Boolean] without what has passed and depends on nothing that has changed
  # @return [Boolean] whether all of them have passed
  def run(names = [], resume: false)
    chosen = choose(names).map { |stage| [stage, resume ? left_of(stage) : EVERYTHING] }
    chosen.reject! { |_, left| left == NOTHING }
    note_code(chosen.map(&:first))
    FileUtils.mkdir_p(@logs)
    good = with_signals { run_beside_each_other(chosen) }
    @out.puts summary
    good
  end

  # @return [String] "passed", "failed" or "incomplete", of all stages with this code
  def result
    return "passed" if @stages.all? { |stage| passed?(stage) }

    results = @stages.to_h { |stage| [stage, recorded.dig("stages", stage.name)] }.compact
    failed = results.any? { |stage, result| result["result"] == "failed" && changed(stage, result) == [] }
    failed ? "failed" : "incomplete"
  end

  private

  def choose(names)
    unknown = names.reject { |name| @stages.any? { |stage| stage.name.start_with?(name) } }
    known = @stages.map(&:name).join(", ")
    raise ArgumentError, "no stage begins with #{unknown.first.inspect} (there are: #{known})" if unknown.any?

    names.empty? ? @stages : @stages.select { |stage| stage.name.start_with?(*names) }
  end

  def passed?(stage) = left_of(stage) == NOTHING

  def left_of(stage)
    result = recorded.dig("stages", stage.name)
    changed = result && changed(stage, result) or return EVERYTHING
    return still_sanitized?(stage, result) ? NOTHING : EVERYTHING if stage.sanitizer
    return result["result"] == "passed" ? NOTHING : EVERYTHING if changed.empty?

    files = stage.concerned&.call(changed) or return EVERYTHING
    passed_but_for?(files, result) ? files : EVERYTHING
  end

  # Whether a stage passes if these files do. It may have failed before it named files, or because it skipped tests.
  # A file that failed, and that no change concerns, is not tried once more.
  def passed_but_for?(files, result)
    return true if result["result"] == "passed"

    skipped = (result["again"] || result)["skipped"]
    result.key?("failed_files") && skipped.zero? && (result["failed_files"] - files).empty?
  end

  def still_sanitized?(stage, result)
    result["result"] == "passed" && @sanitized.changed(stage.sanitizer, stage.tests, recorded["sanitized"]).empty?
  end

  # What the stage covers and has changed since its result was noted; nil if git does not know that code.
  def changed(stage, result)
    @code.since(result.dig("again", "commit") || result["commit"])&.select do |file|
      file.start_with?(*stage.covers) && file != SanitizedContent::RESULTS
    end
  end

  # A result is that of the code with which the run began, whatever changes meanwhile.
  def note_code(stages)
    commit
    @digests = stages.select(&:sanitizer)
                     .to_h { |stage| [stage, @sanitized.digests(stage.sanitizer, stage.tests)] }
  end

  def run_beside_each_other(chosen)
    lanes = chosen.partition { |stage,| !stage.beside }
    lanes.map { |lane| Thread.new { lane.map { |stage, left| run_stage(stage, left) }.all? } }.map(&:value).all?
  end

  # Each stage is a group of its own, so that all that it has started ends with this program.
  def with_signals
    before = %w[INT TERM].to_h { |name| [name, trap(name) { |number| end_groups(number) }] }
    good = yield
    raise SignalException, @ended_by if @ended_by

    good
  ensure
    before&.each { |name, handler| trap(name, handler || "DEFAULT") }
  end

  def end_groups(number)
    @ended_by = number
    @groups.each do |pid|
      Process.kill(:TERM, -pid)
    rescue Errno::ESRCH
      nil # it has ended
    end
  end

  def run_stage(stage, left)
    return false if @ended_by

    log = File.join(@logs, "#{stage.name.tr(" /", "-")}.log")
    files = left == EVERYTHING ? [] : left
    say "== #{stage.name}#{" (#{files.size} files)" if files.any?}: #{log.delete_prefix("#{@root}/")}"
    started = now
    succeeded = succeeds?(stage, files, log)
    return false if @ended_by

    @lock.synchronize { record(stage, files, File.read(log).scrub, succeeded, now - started) }
  end

  def succeeds?(stage, files, log)
    pid = Process.spawn(stage.environment, *stage.command, *files, chdir: @root, out: log, err: %i[child out],
                                                                   in: File::NULL, pgroup: true)
    @lock.synchronize { @groups += [pid] }
    end_groups(@ended_by) if @ended_by # the signal came before the process was known
    Process.wait2(pid).last.success?
  ensure
    @lock.synchronize { @groups -= [pid] }
  end

  def record(stage, files, output, succeeded, seconds)
    noted = noted(output, succeeded).merge("seconds" => seconds.round, "date" => Time.now.utc.iso8601,
                                           "commit" => commit)
    recorded["stages"][stage.name] = files.any? ? merged(recorded["stages"][stage.name], files, noted) : noted
    record_digests(stage) if stage.sanitizer && noted["result"] == "passed"
    write
    tell(stage, noted, output)
    noted["result"] == "passed"
  end

  def noted(output, succeeded)
    counts = counted(output, succeeded)
    failed = output.scan(FAILED_FILE).flatten.uniq.sort
    { "result" => succeeded && counts["failed"].zero? ? "passed" : "failed", **counts, **left_out(output),
      **(failed.any? ? { "failed_files" => failed } : {}) }
  end

  # The counts of the whole run stay, beside those of files that ran again after a change.
  def merged(whole, files, again)
    failed = again["failed_files"] ? { "failed_files" => again["failed_files"] } : {}
    whole = whole.except("again", "failed_files").merge("result" => again["result"], **failed)
    whole.merge("again" => again.except("result", "failed_files").merge("files" => files))
  end

  # A program without a closing line, a benchmark say, counts as one test.
  def counted(output, succeeded)
    counts = output.scan(TestCommand::CLOSING_LINE).last&.map(&:to_i)
    %w[passed failed skipped].zip(counts || (succeeded ? [1, 0, 0] : [0, 1, 0])).to_h
  end

  # What a stage has left out because this machine can't have it.
  def left_out(output)
    names = output.scan(NOT_RUN).flat_map { |(line)| line.split(", ") }
    names.empty? ? {} : { "not_run" => names }
  end

  def tell(stage, noted, output)
    lines = noted["result"] == "passed" ? [] : output.lines.last(LINES).map { |line| "    #{line}" }
    lines << "not run: #{noted["not_run"].join(", ")}" if noted["not_run"]
    say(*lines, format("%<name>s %<result>s: %<passed>d passed, %<failed>d failed, %<skipped>d skipped in " \
                       "%<seconds>d s", name: stage.name, **noted.transform_keys(&:to_sym)))
  end

  def say(*lines) = @out.write(lines.map { |line| "#{line.chomp}\n" }.join)

  # Other stages have tests with the same sanitizer.
  def record_digests(stage)
    known = recorded["sanitized"].fetch(stage.sanitizer, {}).select { |test, _| File.file?(File.join(@root, test)) }
    recorded["sanitized"][stage.sanitizer] = known.merge(@digests.fetch(stage)).sort.to_h
  end

  # Stages that there are no more leave the file.
  def write
    stages = recorded["stages"].slice(*@stages.map(&:name))
    content = { "result" => result, "date" => Time.now.utc.iso8601, "commit" => commit, "stages" => stages,
                "sanitized" => recorded["sanitized"] }
    File.write("#{@path}.new", "#{JSON.pretty_generate(content)}\n")
    File.rename("#{@path}.new", @path)
  end

  def recorded
    @recorded ||= JSON.parse(File.read(@path))
  rescue Errno::ENOENT
    @recorded = { "stages" => {}, "sanitized" => {} }
  end

  def summary
    counts = @stages.map { |stage| passed?(stage) }.tally
    "nightly: #{result}, #{counts[true].to_i} of #{@stages.size} stages have passed with the code of #{commit}"
  end

  # The commit, with a mark when files differ from it.
  def commit
    @commit ||= begin
      head, status = Open3.capture2("git", "rev-parse", "--short=12", "HEAD", chdir: @root, err: File::NULL)
      changes, = Open3.capture2("git", "status", "--porcelain", "--", ".", ":!#{SanitizedContent::RESULTS}",
                                chdir: @root, err: File::NULL)
      status.success? ? "#{head.strip}#{"+changes" unless changes.empty?}" : "unknown"
    end
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

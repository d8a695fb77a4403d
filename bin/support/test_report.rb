# frozen_string_literal: true

# Adds up what the test processes counted, and tells it.
class TestReport
  # Ruby lists these by the hundred when it crashes: loaded features and mapped memory. They hide the failure.
  CRASH_LISTS = /^ *(?:\d+ \S+\.(?:rb|so)|\h{8,}-\h{8,} [r-][w-][x-][ps] .*)\n/
  # Lines of a failure that are printed; of more, the first and the last.
  LINES = 300

  attr_reader :passed, :failed, :skipped

  # @param some_may_be_empty [Boolean] a process that ran no test is no mistake (tests were chosen by name)
  # @param durations [Integer] how many of the slowest files are named at the end
  def initialize(out: $stdout, some_may_be_empty: false, durations: 0)
    @out = out
    @some_may_be_empty = some_may_be_empty
    @durations = durations
    @passed = @failed = @skipped = 0
    @failures = []
    @unsteady = []
    @skips = Hash.new(0)
    @seconds = Hash.new { |seconds, file| seconds[file] = [] }
  end

  def add(result)
    @passed += result.passed
    @failed += result.failed
    @skipped += result.skipped
    @failures.concat(named(result))
    result.skips.each { |skip| @skips[skip] += 1 }
    @seconds[result.file || result.title] << result.seconds
    tell(result)
  end

  # It has failed, and is run a second time.
  def doubt(result) = tell(result)

  # The second time it has not failed: the report names it, so that a developer examines it.
  def unsteady(result) = @unsteady.concat(named(result))

  # Prints what failed and what was skipped, then the closing line as the very last one.
  # @param ci [Boolean] a skipped test fails the run
  # @return [Boolean] whether the run is good
  def close(ci: ENV["CI"] == "true")
    tell_durations
    @skips.sort.each { |skip, count| @out.puts "skipped#{" (#{count} times)" if count > 1}: #{skip}" }
    list("unsteady, passed the second time", @unsteady)
    list("failed", @failures)
    @out.puts "In CI no test may be skipped: bin/setup --system installs what they need." if ci && @skipped > 0
    @out.puts "No test was run." if @passed + @failed == 0
    @out.puts "#{@passed} passed, #{@failed} failed, #{@skipped} skipped"
    @failed == 0 && @passed > 0 && !(ci && @skipped > 0)
  end

  private

  def named(result)
    names = result.failures.map { |name| name.start_with?(result.title) ? name : "#{result.title} #{name}" }
    names.any? && result.again ? [*names, "  once more: #{result.again}"] : names
  end

  def list(word, names)
    names.each { |name| @out.puts name.start_with?(" ") ? name : "#{word}: #{name}" }
  end

  def tell(result)
    return if empty?(result) && @some_may_be_empty

    counts = { passed: result.passed, failed: result.failed, skipped: result.skipped }.reject { |_, n| n == 0 }
    line = counts.map { |word, n| "#{n} #{word}" }.join(", ")
    @out.puts format("%<title>s: %<line>s (%<seconds>.1f s)", title: result.title, seconds: result.seconds,
                                                              line: line.empty? ? "no test" : line)
    @out.puts readable(result.output).gsub(/^/, "    ") if result.failed > 0
  end

  def readable(output)
    lines = output.gsub(CRASH_LISTS, "").lines
    return lines.join if lines.size <= LINES

    [*lines.first(LINES / 2), "… #{lines.size - LINES} lines …\n", *lines.last(LINES / 2)].join
  end

  def tell_durations
    slowest = @seconds.max_by(@durations) { |_, seconds| seconds.sum }
    slowest.each do |file, seconds|
      @out.puts format("%<sum>.1f s: %<file>s (%<runs>d times, at most %<most>.1f s)",
                       sum: seconds.sum, file:, runs: seconds.size, most: seconds.max)
    end
  end

  def empty?(result) = result.passed + result.failed + result.skipped == 0
end

# frozen_string_literal: true

# Adds up what the test processes counted, and tells it.
class TestReport
  attr_reader :passed, :failed, :skipped

  # @param some_may_be_empty [Boolean] a process that ran no test is no mistake (tests were chosen by name)
  def initialize(out: $stdout, some_may_be_empty: false)
    @out = out
    @some_may_be_empty = some_may_be_empty
    @passed = @failed = @skipped = 0
    @failures = []
    @skips = Hash.new(0)
  end

  def add(result)
    @passed += result.passed
    @failed += result.failed
    @skipped += result.skipped
    @failures.concat(result.failures.map { |name| name.start_with?(result.title) ? name : "#{result.title} #{name}" })
    result.skips.each { |skip| @skips[skip] += 1 }
    tell(result)
  end

  # Prints what failed and what was skipped, then the closing line as the very last one.
  # @param ci [Boolean] a skipped test fails the run
  # @return [Boolean] whether the run is good
  def close(ci: ENV["CI"] == "true")
    @skips.sort.each { |skip, count| @out.puts "skipped#{" (#{count} times)" if count > 1}: #{skip}" }
    @failures.each { |failure| @out.puts "failed: #{failure}" }
    @out.puts "In CI no test may be skipped: bin/setup --system installs what they need." if ci && @skipped > 0
    @out.puts "No test was run." if @passed + @failed == 0
    @out.puts "#{@passed} passed, #{@failed} failed, #{@skipped} skipped"
    @failed == 0 && @passed > 0 && !(ci && @skipped > 0)
  end

  private

  def tell(result)
    return if empty?(result) && @some_may_be_empty

    counts = { passed: result.passed, failed: result.failed, skipped: result.skipped }.reject { |_, n| n == 0 }
    line = counts.map { |word, n| "#{n} #{word}" }.join(", ")
    @out.puts format("%<title>s: %<line>s (%<seconds>.1f s)", title: result.title, seconds: result.seconds,
                                                              line: line.empty? ? "no test" : line)
    @out.puts result.output.gsub(/^/, "    ") if result.failed > 0
  end

  def empty?(result) = result.passed + result.failed + result.skipped == 0
end

# frozen_string_literal: true

# Which test file runs on which Ruby, with which selector and in which mode of the server.
class TestPlan
  # Run: `nil` is the default selector, which is the best one, and the default mode.
  Run = Data.define(:ruby, :file, :selector, :mode)

  # - whole: every test on each Ruby; the selectors where they matter
  # - ci: the same on Ruby WHOLE_ON; on the others what depends on the version, and a smoke of everything
  # - nightly: every test on each Ruby with every selector
  NAMES = %w[whole ci nightly].freeze

  # The Ruby on which the plan `ci` runs everything; the preferred one where this one is missing.
  WHOLE_ON = "3.4"

  # Folders whose tests depend on the selector: they run with each.
  EACH_SELECTOR = %w[test/selector/ test/scheduler/].freeze

  # Folders of programs and pages, which are the same with each selector.
  ONCE = %w[test/benchmark/ test/docs/ test/examples/ test/fuzz/ test/hold/ test/setup/ test/soak/ test/switch/].freeze

  # Folders whose tests run with fibers, and once more with each of these.
  EACH_MODE = %w[test/server/conformance/].freeze
  MODES = %w[thread].freeze

  # Folders whose tests depend on the version of Ruby: its scheduler's hooks, its C interface, the gems' adapters.
  EACH_VERSION = %w[test/scheduler/ test/selector/ test/offload/ test/preemption/ test/concurrency/ test/databases/
                    test/async/].freeze

  # @param root [String] the folder that holds test/
  # @param rubies [Array<TestInterpreter>]
  # @param name [String] one of NAMES
  # @param selectors [Array<String>, nil] these only; "default" is the best one, whose own name means the same
  def initialize(root:, rubies:, name: "whole", selectors: nil)
    @root = root
    @rubies = rubies
    @name = name
    @selectors = selectors
    @marks = Hash.new do |marks, path|
      marks[path] = File.foreach(File.join(@root, path)).first(12).join.scan(/^# test: (.+)$/).flatten.map(&:strip)
    end
  end

  # Every run of the given files, one Ruby after the other.
  # @param files [Array<String>] relative to the root
  # @return [Array<Run>]
  def runs(files)
    @rubies.flat_map do |ruby|
      chosen = whole_on?(ruby) ? files : files.select { |file| marked?(file, "smoke") || version_matters?(file) }
      chosen.flat_map do |file|
        selectors_for(ruby, file).product(modes_for(file)).map do |selector, mode|
          Run.new(ruby:, file:, selector:, mode:)
        end
      end
    end
  end

  # A comment in the first lines of a file: `# test: alone` (no other test beside it), `# test: each selector`,
  # `# test: each mode`, `# test: each version`, `# test: one version` (in CI on WHOLE_ON only, whatever its folder
  # says), `# test: one selector` (each in the nightly only), `# test: once` (as in the folders {ONCE}), `# test: long`
  # (it comes first),
  # `# test: smoke` (on each Ruby, also in CI), `# test: nightly` (in .ci/nightly only), `# test: sanitize` and
  # `# test: not sanitized` (see bin/sanitize).
  def marked?(file, word) = file ? @marks[file].include?(word) : false

  # @return [Boolean] whether the file runs on each Ruby in CI because it depends on the version
  def version_matters?(file)
    marked?(file, "each version") ||
      (file.start_with?(*EACH_VERSION) && !once?(file) && !marked?(file, "one version"))
  end

  # @return [Boolean] whether it runs with the default selector only, and not on each version in CI
  def once?(file) = marked?(file, "once") || file.start_with?(*ONCE)

  # @return [Boolean] whether its tests run with each selector outside of the nightly, too
  def selector_matters?(file)
    return false if once?(file) || marked?(file, "one selector")

    file.start_with?(*EACH_SELECTOR) || marked?(file, "each selector")
  end

  # @return [Array<String>] of the given files those that run under sanitizers: they test the C core, and don't need
  #   more memory than AddressSanitizer leaves (a hundred thousand fibers, say)
  def sanitized(files)
    files.select do |file|
      (file.start_with?(*EACH_SELECTOR) || marked?(file, "sanitize")) && !marked?(file, "not sanitized")
    end
  end

  # @return [Boolean] whether files marked `# test: nightly` belong to it
  def nightly? = @name == "nightly"

  private

  def whole_on?(ruby) = @name != "ci" || ruby.equal?(whole)

  def whole = @whole ||= @rubies.find { |ruby| ruby.version.start_with?("#{WHOLE_ON}.") } || @rubies.first

  # The default selector is not run a second time by its name, nor ever by it: loops in Ractors can't have io_uring.
  def selectors_for(ruby, file)
    if @selectors
      chosen = nightly? && once?(file) ? @selectors & %w[default] : @selectors
      return chosen.map { |selector| selector unless ["default", ruby.selectors.first].include?(selector) }.uniq
    end

    each = nightly? ? !once?(file) : selector_matters?(file) && whole_on?(ruby)
    each ? [nil, *ruby.selectors.drop(1)] : [nil]
  end

  def modes_for(file)
    file.start_with?(*EACH_MODE) || marked?(file, "each mode") ? [nil, *MODES] : [nil]
  end
end

# frozen_string_literal: true

# A table of rules: each row becomes a test that is named after its section and its words.
module RuleTable
  # What a row expects that is to be refused.
  Refused = Data.define(:status, :reason)

  # @return [Array<Array>] the rows without their words: bytes, what is expected …
  def rows = @rows ||= []

  # @param sections [Hash{String => Array}] by section, "9112 2.2" say: [words, bytes, what is expected]
  def rules(sections)
    sections.each do |section, list|
      list.each do |words, *rest|
        name = "test_#{section} #{words}".tr(" ", "_")
        raise "there are two rules called #{name}" if method_defined?(name)

        define_method(name) { check_rule(*rest) }
        rows << rest
      end
    end
  end

  # @return [Refused]
  def refused(status, reason = nil) = Refused.new(status, reason)
end

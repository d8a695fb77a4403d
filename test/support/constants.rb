# frozen_string_literal: true

# Limits that no option sets, replaced by values with which a test is short.
module Constants
  # @param owner [Module]
  # @param name [Symbol]
  # @param value [Object]
  # @return [Object] the block's result; afterwards the constant is as before
  def self.replace(owner, name, value)
    before = set(owner, name, value)
    yield
  ensure
    set(owner, name, before)
  end

  # Replaces a constant for good.
  # @return [Object] its former value
  def self.set(owner, name, value)
    owner.send(:remove_const, name).tap { owner.const_set(name, value) }
  end

  # @param values [Hash{Symbol => Object}] of options, and of Heddle::HTTP::Limits::FIXED
  # @return [Heddle::Server::Configuration]
  def self.configuration(**values)
    fixed = Heddle::HTTP::Limits::FIXED
    limits = fixed.merge(values.slice(*fixed.keys)).freeze
    replace(Heddle::HTTP::Limits, :FIXED, limits) { Heddle::Server::Configuration.new(**values.except(*fixed.keys)) }
  end
end

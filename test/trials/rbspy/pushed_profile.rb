# frozen_string_literal: true

# The stacks of profiles as pyroscope pushes them (push.v1.PushRequest with a pprof Profile each), by protobuf's wire
# format.
module PushedProfile
  module_function

  # @param body [String] a PushRequest
  # @return [Array<Array<String>>] the methods of each stack, innermost first
  def stacks(body)
    fields(body, 1).flat_map { |series| fields(series, 2) }.flat_map { |sample| fields(sample, 1) }
                   .flat_map { |profile| stacks_of(unpacked(profile)) }
  end

  def unpacked(profile)
    profile.start_with?("\x1F\x8B".b) ? Zlib.gunzip(profile) : profile
  end

  def stacks_of(profile)
    strings = fields(profile, 6)
    names = fields(profile, 5).to_h { |function| [fields(function, 1).first, strings[fields(function, 2).first || 0]] }
    places = fields(profile, 4).to_h do |location|
      [fields(location, 1).first, fields(location, 4).map { |line| names[fields(line, 1).first] }]
    end
    fields(profile, 2).map { |sample| numbers(sample, 1).flat_map { |id| places.fetch(id) } }
  end

  # @return [Array<Integer>] of a repeated field, packed or not
  def numbers(message, wanted)
    fields(message, wanted).flat_map do |value|
      next [value] if value.is_a?(Integer)

      at = 0
      found = []
      while at < value.bytesize
        number, at = varint(value, at)
        found << number
      end
      found
    end
  end

  # @return [Array<String, Integer>] the values of one field
  def fields(message, wanted)
    found = []
    at = 0
    while at < message.bytesize
      key, at = varint(message, at)
      value, at = value_at(message, at, key & 7)
      found << value if key >> 3 == wanted
    end
    found
  end

  def value_at(message, at, type)
    case type
    when 0 then varint(message, at)
    when 1 then [nil, at + 8]
    when 2
      length, at = varint(message, at)
      [message.byteslice(at, length), at + length]
    when 5 then [nil, at + 4]
    else raise ArgumentError, "no protobuf: type #{type}"
    end
  end

  def varint(message, at)
    number = shift = 0
    loop do
      byte = message.getbyte(at) or raise ArgumentError, "a cut number"
      number |= (byte & 127) << shift
      at += 1
      return [number, at] if byte < 128

      shift += 7
    end
  end
end

# frozen_string_literal: true

# Step 6: one who doesn't listen. A client that never reads would let its mailbox grow without end, or, with a bounded
# one, would make everybody wait who speaks. Here a mailbox holds a few messages, and who has no room for one more is
# shown the door.
#
#     ruby docs/tutorial/06_slow_readers.rb

require "heddle"

# Somebody in the room; `pace` is how many seconds they need for a message.
Member = Struct.new(:name, :pace, :mailbox, :task) do
  def listen
    mailbox.each do |message|
      sleep pace
      puts "#{name} has read #{message}" if message == "message 20"
    end
  end
end

def tell(members, message)
  members.reject! do |member|
    next false if member.mailbox.push(message, timeout: 0) # nil: there is no room

    puts "#{member.name} is too slow, and is gone"
    member.task.cancel
    true
  end
end

Heddle.run do
  members = [["quick", 0.001], ["slow", 10]].map do |name, pace|
    Member.new(name, pace, Heddle::Channel.new(5)).tap do |member|
      member.task = Heddle.async(name: name) { member.listen }
    end
  end

  1.upto(20) do |number|
    tell(members, "message #{number}")
    sleep 0.005
  end
  members.each { |member| member.mailbox.close } # who is still here reads what is left
end

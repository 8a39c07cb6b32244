"""What a team's servers are worth to one person: their texts, their pace, and the way to them."""
